"""The contracts of a folder while a follower runs: those that can be read, or could last, and whose cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from configs.contract import Contract, read_contracts
from pipelines.watched import VanishedFiles, files_in, is_new


class FolderOfContracts:
    """Reads a folder of contracts again when a file in it has changed; while it cannot be listed all stays.

    A file has to be away for 10 s until its contract is gone (`VanishedFiles`).

    Attributes:
        contracts: the newest valid contract of each job that has a file.
        wrong: what is wrong with the file of each job whose file cannot be read as a contract now.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: object = None
        self._vanished = VanishedFiles()
        self.contracts: Mapping[str, Contract] = {}
        self.wrong: Mapping[str, str] = {}

    def look(self, now: float) -> str:
        """Read the folder if it has changed since the last look; return what is wrong with it, "" where nothing is.

        Args:
            now: seconds, of a clock that nobody sets.
        """
        files, problem = files_in(self._folder)
        away = self._vanished.look({*self.contracts, *self.wrong} - {*files}, now, not problem)
        if problem:
            return f"{self._folder} {problem}; contracts stay as they were read last"
        seen = files, away
        if seen == self._seen and not is_new(files):
            return ""
        read, wrong = read_contracts(self._folder)
        kept = {job: one for job, one in self.contracts.items() if job in {*wrong, *away}}
        last = {job: problem for job, problem in self.wrong.items() if job in away}
        self.contracts, self.wrong = read | kept, last | wrong
        self._seen = seen
        return ""
