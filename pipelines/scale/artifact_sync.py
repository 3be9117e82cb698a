"""What was learned, on its way into the query: fetched by alias in the driver, read from plain files in a worker.

A worker keeps no object from batch to batch, and opening the registry there would cost seconds. So the driver fetches
each new version once, tries it, and only then lets a small file point to it, which a worker reads at every decision.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from configs.contract import Contract
from pipelines.scale.contracts import replaced

Read = Callable[[Path, Contract], Any]
"""From a version's files to what they hold; a function of a module, because it is sent to the workers by name.

It raises ValueError for what is none of this code's, or does not fit the contract.
"""


class ArtifactSource(NamedTuple):
    """Where what was learned comes from, of one kind.

    Attributes:
        what: it is, in words.
        version_of: the version that an alias points to, by job; None without one.
        fetch: puts the files of a job's version into a folder.
        read: reads them.
    """

    what: str
    version_of: Callable[[str], str | None]
    fetch: Callable[[str, str, Path], object]
    read: Read


class ArtifactSync:
    """The driver's part: fetches new versions to where the workers look.

    A registry that is away may hold it up for minutes, so it runs in a thread of its own.
    """

    def __init__(
        self, source: ArtifactSource, contracts: Callable[[], Mapping[str, Contract]], folder: Path, every_s: float
    ) -> None:
        self._source, self._contracts, self._folder, self._every_s = source, contracts, folder, every_s
        self._looked = -every_s
        self._tried: dict[str, str] = {}

    def tick(self, clock: float | None = None) -> list[str]:
        """Look at the aliases if it is time to; what changed or went wrong, in words. `clock` only ever rises."""
        clock = time.monotonic() if clock is None else clock
        if clock - self._looked < self._every_s:
            return []
        self._looked = clock
        return [line for job, contract in self._contracts().items() if (line := self._look(job, contract))]

    def _look(self, job: str, contract: Contract) -> str:
        what, stays = self._source.what, f"the present {self._source.what} stays"
        try:
            version = self._source.version_of(job)
        except RuntimeError as error:
            return self._once(job, f"?{error}", f"{job}: {error}; {stays}")
        here = f"{version} {contract.hash}"
        if version is None or self._tried.get(job) == here:
            return ""
        files = self._folder / job / version
        try:
            self._source.fetch(job, version, files)
            self._source.read(files, contract)
        except (RuntimeError, ValueError, OSError) as error:
            # What cannot be read stays so; what could not be fetched may come the next time.
            tried = here if isinstance(error, ValueError) else f"?{version} {error}"
            return self._once(job, tried, f"{job}: {what} version {version}: {error}; {stays}")
        self._point(job, files)
        return self._once(job, here, f"{job}: {what} is version {version}")

    def _point(self, job: str, files: Path) -> None:
        """Let the workers read a version, and remove those that none of them can be reading any more."""
        pointer = _pointer(self._folder, job)
        before = json.loads(pointer.read_text())["files"] if pointer.exists() else None
        replaced(pointer, {"version": files.name, "files": str(files)})
        for old in files.parent.iterdir():
            if old != files and str(old) != before:
                shutil.rmtree(old, ignore_errors=True)

    def _once(self, job: str, what: str, line: str) -> str:
        if self._tried.get(job) == what:
            return ""
        self._tried[job] = what
        return line


class SyncedArtifacts(NamedTuple):
    """The workers' part: where the driver put it, and how it is read."""

    folder: Path
    read: Read

    def newest(self, contract: Contract) -> tuple[str, Any] | None:
        """The version that has come for a contract's job, and what it holds; None before one.

        It is read once per worker process.

        Raises:
            ValueError, OSError: it cannot be read: what an earlier process fetched may be of another age.
        """
        pointer = _pointer(self.folder, contract.job)
        if not pointer.exists():
            return None
        here = json.loads(pointer.read_text())
        return here["version"], _known(self.read, here["files"], contract)


@lru_cache(maxsize=32)
def _known(read: Read, files: str, contract: Contract) -> Any:
    return read(Path(files), contract)


def _pointer(folder: Path, job: str) -> Path:
    return folder / f"{job}.json"
