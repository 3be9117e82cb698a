"""The contracts of a folder while a follower runs: those that can be read, or could last, and whose cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from configs.contract import Contract, read_contracts
from pipelines.watched import GONE_S, is_new, state_of


class FolderOfContracts:
    """Reads a folder of contracts again when a file in it has changed; while the folder is missing all stays.

    A file has to be away for `GONE_S` (10 s) until its contract is gone: an editor or git may be writing it anew.

    Attributes:
        contracts: the newest valid contract of each job that has a file.
        wrong: jobs whose file cannot be read as a contract now.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: object = None
        self._there: dict[str, float] = {}  # when a job's file was there last
        self.contracts: Mapping[str, Contract] = {}
        self.wrong: frozenset[str] = frozenset()

    def look(self, now: float) -> None:
        """Read the folder if it has changed since the last look; `now` is of a clock that nobody sets.

        Raises:
            OSError: it cannot be listed.
        """
        if not self._folder.is_dir():
            self._there = dict.fromkeys(self._there, now)
            return
        files = {file.name: state_of(file) for file in self._folder.glob("*.yaml")}
        there = self._there | dict.fromkeys((name.removesuffix(".yaml") for name in files), now)
        self._there = {job: at for job, at in there.items() if now - at < GONE_S}
        seen = files, frozenset(self._there)
        if seen == self._seen and not is_new(files):
            return
        read, wrong = read_contracts(self._folder)
        away = {*self._there} - {*read, *wrong}
        kept = {job: one for job, one in self.contracts.items() if job in {*wrong, *away}}
        self.contracts, self.wrong = read | kept, frozenset(wrong) | (self.wrong & away)
        self._seen = seen
