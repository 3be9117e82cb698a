"""Learned artifacts (agents, calibrators) for the autoscaler query: fetched by the driver, read by workers."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from configs.contract import Contract
from pipelines.watched import read_changed
from pipelines.whole_file import write_json

Read = Callable[[Path, Contract], Any]
"""Loads a version's files; a module's function, because workers get it by name.

It raises ValueError for files of another release, and for those that do not fit the contract.
"""
POINTERS = ".pointers"
"""Folder of the pointer files, beside the jobs' folders of versions; no job can have this name."""


class ArtifactSource(NamedTuple):
    """One kind of learned artifact, and where it comes from.

    Attributes:
        what: its name, for messages.
        champions: every job's champion (the version that serves), by job, in one look-up; raises RuntimeError if the
            registry does not answer.
        version_of: the version to use, by job and champion; None without one; raises RuntimeError as `champions`.
        fetch: downloads (job, version) into a folder; raises RuntimeError or OSError if it cannot.
        read: loads the files.
    """

    what: str
    champions: Callable[[], Mapping[str, str]]
    version_of: Callable[[str, str], str | None]
    fetch: Callable[[str, str, Path], object]
    read: Read


class ArtifactSync:
    """The driver's part: downloads new versions to `<folder>/<job>/<version>`, named in files of `<folder>/.pointers`.

    A registry that does not answer may hold `sync` up for minutes, so it runs in a thread of its own.
    """

    def __init__(
        self, source: ArtifactSource, contracts: Callable[[], Mapping[str, Contract]], folder: Path, every_s: float
    ) -> None:
        self._source, self._contracts, self._folder, self._every_s = source, contracts, folder, every_s
        self._synced_at = -every_s
        self._tried: dict[str, str] = {}

    def sync(self, monotonic_s: float | None = None) -> list[str]:
        """Bring every job's present artifact version to the workers; does nothing within `every_s` s of the last time.

        A new version is downloaded (which blocks), read as a test, and named in the job's pointer file, which workers
        follow. All but it and the one before are deleted from disk. If downloading or reading fails, workers keep the
        version they have; only a failed download is tried again with the next call. One job's trouble stops no other's.

        Args:
            monotonic_s: a clock that never falls, seconds; default: `time.monotonic()`.

        Returns:
            One line per change or new problem, each said once; empty if there is none or it is not time yet.
        """
        monotonic_s = time.monotonic() if monotonic_s is None else monotonic_s
        if monotonic_s - self._synced_at < self._every_s:
            return []
        self._synced_at = monotonic_s
        try:
            champions = self._source.champions()
        except RuntimeError as error:
            line = self._once("", f"?{error}", f"{error}; every job's present {self._source.what} stays")
            return [line] if line else []
        self._tried.pop("", None)
        lines = [
            self._try_job(job, contract, champions[job])
            for job, contract in self._contracts().items()
            if job in champions
        ]
        return [line for line in lines if line]

    def _try_job(self, job: str, contract: Contract, champion: str) -> str:
        try:
            return self._sync_job(job, contract, champion)
        except Exception as error:  # whatever it is, the other jobs get theirs
            problem = f"{job}: {str(error) or repr(error)}; the present {self._source.what} stays"
            return self._once(job, f"?{problem}", problem)

    def _sync_job(self, job: str, contract: Contract, champion: str) -> str:
        what, version = self._source.what, self._source.version_of(job, champion)
        wanted = f"{version} {contract.hash}"
        if version is None or self._tried.get(job) == wanted:
            return ""
        files = self._folder / job / version
        try:
            self._bring(job, version, files, contract)
        except (RuntimeError, ValueError, OSError) as error:
            if (pointed := _pointed(self._folder, job)) is None or pointed[1] != str(files):
                shutil.rmtree(files, ignore_errors=True)
            # What cannot be read stays so; what could not be fetched may come the next time.
            tried = wanted if isinstance(error, ValueError) else f"?{version} {error}"
            return self._once(job, tried, f"{job}: {what} version {version}: {error}; the present {what} stays")
        self._point(job, files)
        return self._once(job, wanted, f"{job}: {what} is version {version}")

    def _bring(self, job: str, version: str, files: Path, contract: Contract) -> None:
        """Download a version unless it is there and can be read: versions never change, but a disk may have lost it."""
        if files.parent.is_file():  # another job's pointer, as an older release left it
            files.parent.unlink()
        if files.is_dir():
            with suppress(ValueError, OSError):
                self._source.read(files, contract)
                return
        part = files.with_name(f".{version}.part")
        shutil.rmtree(part, ignore_errors=True)
        self._source.fetch(job, version, part)
        shutil.rmtree(files, ignore_errors=True)  # only now: a registry that is away takes nothing from the workers
        part.replace(files)
        self._source.read(files, contract)

    def _point(self, job: str, files: Path) -> None:
        """Let the workers read a version, and remove those that none of them can be reading any more."""
        before = _pointed(self._folder, job)
        write_json(_pointer(self._folder, job), {"version": files.name})  # no path: a backup may be restored elsewhere
        for old in files.parent.iterdir():
            if old != files and (before is None or str(old) != before[1]):
                shutil.rmtree(old, ignore_errors=True)

    def _once(self, job: str, tried: str, line: str) -> str:
        if self._tried.get(job) == tried:
            return ""
        self._tried[job] = tried
        return line


class SyncedArtifacts(NamedTuple):
    """The workers' part: reads the version that the driver put into `folder`, with the function `read`."""

    folder: Path
    read: Read

    def newest(self, contract: Contract) -> tuple[str, Any] | None:
        """Return (version, what `read` makes of its files) of the artifact that was synced last.

        None before any, and where the pointer file is damaged. Cached: a worker process reads a pointer again once it
        has changed, and each version once per contract (the job's latency target and executor bounds).

        Raises:
            ValueError: the files cannot be parsed or do not fit the contract.
            OSError: a file is gone or cannot be read.
        """
        pointed = _pointed(self.folder, contract.job)
        if pointed is None:
            return None
        version, files = pointed
        return version, _read_once(self.read, files, contract)


@lru_cache(maxsize=4096)
def _read_once(read: Read, files: str, contract: Contract) -> Any:
    return read(Path(files), contract)


def _pointed(folder: Path, job: str) -> tuple[str, str] | None:
    """Version that a job's pointer file names, and the folder of its files; None without one, and for a damaged one."""
    version = read_changed(_pointer(folder, job), _read_pointer, None)
    return None if version is None else (version, str(folder / job / version))


def _read_pointer(pointer: Path) -> str | None:
    try:
        return str(json.loads(pointer.read_text())["version"])
    except (ValueError, KeyError, TypeError):
        return None


@lru_cache(maxsize=4096)  # each step of a job asks for its own, twice
def _pointer(folder: Path, job: str) -> Path:
    return folder / POINTERS / f"{job}.json"
