"""Champions in a folder instead of a registry: the loader takes them from there by its ordinary path.

A version is a folder with the set's three members; which of them is a job's champion stands in a file of the job's
name. A registry would take seconds to start and say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from models.forecast.core.forecaster import Forecaster
from models.kinds import Networked
from pipelines.serve.models.model_set import MEMBERS, ModelSet, unpack


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


def shelve(folder: Path, version: str, made: ModelSet) -> None:
    """Keep a set as a version."""
    home = folder / version
    home.mkdir(parents=True, exist_ok=True)
    for name in MEMBERS:
        (home / f"{name}{_ending(name, made)}").write_bytes(made.members[name])


def promote(folder: Path, jobs: Iterable[str], version: str) -> None:
    """Make a version the champion of jobs; the server sees it at its next look."""
    home = folder / "champion"
    home.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        new = home / f".{job}"
        new.write_text(version)
        new.replace(home / job)


def _ending(name: str, made: ModelSet) -> str:
    return ".pt2" if name == "weights" and isinstance(made.forecaster, Networked) else ".json"


@lru_cache(maxsize=8)
def _read(home: Path) -> ModelSet:
    return unpack({name: next(home.glob(f"{name}.*")).read_bytes() for name in MEMBERS})
