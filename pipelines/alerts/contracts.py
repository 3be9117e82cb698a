"""The contracts of a folder while a follower runs: those that can be read, or could last, and whose cannot be."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from configs.contract import Contract, read_contracts
from pipelines.scale.contracts import SETTLED_S, state_of


class FolderOfContracts:
    """Reads a folder of contracts again when a file in it has changed; while the folder is missing all stays.

    Attributes:
        contracts: the newest valid contract of each job that has a file.
        wrong: jobs whose file cannot be read as a contract now.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, ...]] = {}
        self._seen_at = 0.0
        self.contracts: Mapping[str, Contract] = {}
        self.wrong: frozenset[str] = frozenset()

    def look(self) -> None:
        """Read the folder if it has changed since the last look.

        Raises:
            OSError: it cannot be listed.
        """
        if not self._folder.is_dir():
            return
        files = {file.name: state_of(file) for file in self._folder.glob("*.yaml")}
        newest = max((state[0] / 1e9 for state in files.values() if state), default=0.0)
        if files == self._seen and self._seen_at > newest + SETTLED_S:
            return
        self._seen, self._seen_at = files, time.time()
        read, wrong = read_contracts(self._folder)
        self.contracts = read | {job: self.contracts[job] for job in wrong if job in self.contracts}
        self.wrong = frozenset(wrong)
