"""Champions in a folder instead of a registry: the loader takes them from there by its ordinary path.

A version is a file with the set's members; which of them is a job's champion stands in a file of the job's name. A
registry would take seconds to start and say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from models.forecast.core.forecaster import Forecaster
from models.kinds import Networked
from pipelines.serve.models.model_set import ModelSet, unpack


class FolderChampions:
    """What `pipelines.registry.Registry` is to the loader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def champion_versions(self) -> dict[str, str]:
        """Version that serves, by job."""
        return {path.name: path.read_text() for path in (self._folder / "champion").glob("[!.]*")}

    def model_name(self, job: str) -> str:
        """Under which it would be registered."""
        return f"{job}-forecaster"

    def fetch(self, job: str, version: str) -> tuple[Forecaster, bytes | None]:
        """The forecaster, and its network's archive where it has one."""
        made = _read(self._folder / version)
        return made.forecaster, made.members["weights"] if isinstance(made.forecaster, Networked) else None


def add_version(folder: Path, version: str, made: ModelSet) -> None:
    """Keep a set as a version."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / version).write_bytes(msgspec.msgpack.encode(made.members))


def promote(folder: Path, jobs: Iterable[str], version: str) -> None:
    """Make a version the champion of jobs; the server sees it at its next look."""
    home = folder / "champion"
    home.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        new = home / f".{job}"
        new.write_text(version)
        new.replace(home / job)


@lru_cache(maxsize=8)
def _read(path: Path) -> ModelSet:
    return unpack(msgspec.msgpack.decode(path.read_bytes(), type=dict[str, bytes]))
