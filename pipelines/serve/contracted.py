"""The jobs that have a contract, as their folder has them while a server runs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

from pipelines.watched import VanishedFiles, files_in
from tidecast.fields import JOB_NAME


class ContractedJobs(Collection[str]):
    """The jobs that have a contract file, as a collection of names that follows the folder while a server runs.

    The folder is read at most once in `every_s` wall seconds: when iterated, counted, or asked for a job not known so
    far. A job whose contract was deleted is dropped by the readings of 10 s later: what is refused meanwhile is lost to
    it. While the folder cannot be listed the last jobs stay. A file whose name no job can have is none. Any thread may
    use it.
    """

    def __init__(self, folder: Path, every_s: float) -> None:
        self._folder, self._every_s, self._again = folder, every_s, 0.0
        self._jobs: frozenset[str] = frozenset()
        self._vanished = VanishedFiles()

    def __contains__(self, job: object) -> bool:
        return job in self._jobs or job in self._newest()

    def __iter__(self) -> Iterator[str]:
        return iter(self._newest())

    def __len__(self) -> int:
        return len(self._newest())

    def _newest(self) -> frozenset[str]:
        now = time.monotonic()
        if now >= self._again:
            files, problem = files_in(self._folder)
            there = frozenset(filter(JOB_NAME.pattern.fullmatch, files))
            away = self._vanished.look(self._jobs - there, now, not problem)
            self._jobs, self._again = there | away, now + self._every_s
        return self._jobs
