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
from pipelines.registry import Champion
from pipelines.serve.models.model_set import ModelSet, load_members


class FolderChampions:
    """The champions in a folder; has those methods of `pipelines.registry.Registry` that the loader calls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def champions(self) -> dict[str, Champion]:
        """Read which version is each job's champion; empty where nothing was promoted."""
        return {path.name: Champion(path.read_text()) for path in (self._folder / "champion").glob("[!.]*")}

    def model_name(self, job: str) -> str:
        """Name the job's model as the registry would."""
        return f"{job}-forecaster"

    def fetch(self, job: str, version: str) -> tuple[Forecaster, None]:
        """Read a version's forecaster, and no archive: nothing that is measured has one; alike for every job.

        Raises:
            OSError: there is no such version.
            ModelSetError: its members make no forecaster.
        """
        return _read(self._folder / version).forecaster, None


def add_version(folder: Path, version: str, model: ModelSet) -> None:
    """Write a model to the file `folder/version`, in a new folder if need be; an older file is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / version).write_bytes(msgspec.msgpack.encode(model.members))


def promote_version(folder: Path, jobs: Iterable[str], version: str) -> None:
    """Make a version the champion (the model that serves) of jobs: `folder/champion/JOB` then holds its name.

    Each file is replaced atomically; the server sees it at its next poll (every 0.2 s in `bench_settings`). Whether the
    version exists is not checked.

    Raises:
        OSError: a file cannot be written.
    """
    home = folder / "champion"
    home.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        new = home / f".{job}"
        new.write_text(version)
        new.replace(home / job)


@lru_cache(maxsize=8)
def _read(path: Path) -> ModelSet:
    return load_members(msgspec.msgpack.decode(path.read_bytes(), type=dict[str, bytes]))
