"""The pools' folder as the driver follows it: what was read last counts while a file is wrong, or away for a moment."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

from configs.contract import Contract
from configs.pool import ClusterPool, read_pools
from pipelines.watched import NO_FOLDER, VanishedFiles, files_in, is_new


class PoolFiles:
    """Reads a folder of pools again when a file in it, or a contract, has changed.

    Attributes:
        pools: that count now, by name.
        wrong: what is wrong with a file, by the pool's name.
    """

    def __init__(self, folder: Path) -> None:
        """Follow `folder`; nothing is read yet."""
        self._folder = folder
        self.pools: dict[str, ClusterPool] = {}
        self.wrong: dict[str, str] = {}
        self._vanished, self._away = VanishedFiles(), frozenset[str]()
        self._seen: object = None

    @property
    def unread(self) -> set[str]:
        """Pools of which nothing is known now, but that are not gone: their files are wrong, or have just vanished."""
        return {*self.wrong, *self._away} - {*self.pools}

    def look(self, contracts: Mapping[str, Contract], granted: Set[str], now: float) -> dict[str, str]:
        """Read the folder if something has changed; return what may be said of it, by what it is about.

        Args:
            contracts: of all jobs, by name.
            granted: pools that jobs have grants of.
            now: epoch seconds.
        """
        files, problem = files_in(self._folder)
        missing = {*self.pools, *granted} - {*files}
        self._away = self._vanished.look(missing, now, not problem)
        if problem and (missing or problem != NO_FOLDER):  # who has no pools needs no folder
            return {"pools": f"{self._folder} {problem}; what was granted stays"}
        gone = missing - self._away
        seen = files, contracts, gone
        if seen == self._seen and not is_new(files):
            return {"pools": ""}
        read, self.wrong = read_pools(self._folder, contracts)
        moved = {job for pool in read.values() for job in pool.jobs}
        last = {name: pool for name, pool in self.pools.items() if name in {*self.wrong, *self._away} - {*read}}
        stays = {name: one for name, pool in last.items() if (one := _without(pool, moved))}
        told = {name: f"{pool.cores} cores for {', '.join(pool.jobs)}" for name, pool in read.items()}
        for name in gone:
            told[name] = "its file is gone; its jobs have what their contracts allow"
        for name, problem in self.wrong.items():
            told[name] = f"{problem} Until then {'the last one counts' if name in stays else 'what was granted stays'}."
        self.pools, self._seen = read | stays, seen
        return {"pools": "", **{f"pool {name}": words for name, words in told.items()}}


def _without(pool: ClusterPool, jobs: Set[str]) -> ClusterPool | None:
    """The pool without jobs that are in another one now; None where none is left."""
    left = {job: stated for job, stated in pool.jobs.items() if job not in jobs}
    return pool.model_copy(update={"jobs": left}) if left else None
