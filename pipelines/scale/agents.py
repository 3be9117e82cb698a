"""Learned policies on their way into the query: fetched by alias in the driver, read from plain files in a worker.

A Python worker of Spark keeps no object of the query from batch to batch, and opening the registry there would cost
seconds and a second client of its store. So the driver fetches each new version once, tries it, and only then lets a
small file point to it; a worker looks at that file with every decision. The keyed state is not touched.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED
from models.policy.live import policy_of
from models.policy.view import Policy

STAND_IN = "forecast"
"""Who decides while a policy lacks its agent or its timetable."""

Read = Callable[[Path, Contract], Policy]
"""From a version's files to the policy; a function of a module, because it is sent to the workers by name.

It raises ValueError for what is no agent of this code, or one whose spaces do not fit.
"""


class Source(NamedTuple):
    """Where agents come from: the version an alias points to (None without one), its files into a folder, reading."""

    version_of: Callable[[str], str | None]
    fetch: Callable[[str, str, Path], None]
    read: Read


class Courier:
    """The driver's part: brings new versions to where the workers look."""

    def __init__(self, source: Source, contracts: Iterable[Contract], folder: Path, every_s: float) -> None:
        self._source, self._folder, self._every_s = source, folder, every_s
        self._contracts = {contract.job: contract for contract in contracts}
        self._looked = -every_s
        self._tried: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def tick(self, clock: float | None = None) -> list[str]:
        """Look at the aliases if it is time to; what changed or went wrong, in words. `clock` only ever rises."""
        clock = time.monotonic() if clock is None else clock
        if clock - self._looked < self._every_s:
            return []
        self._looked = clock
        return [said for job in self._contracts if (said := self._look(job))]

    def _look(self, job: str) -> str:
        try:
            version = self._source.version_of(job)
        except RuntimeError as error:
            return self._once(job, f"?{error}", f"{job}: {error}; the present agent stays")
        if version is None or self._tried.get(job) == version:
            return ""
        files = self._folder / job / version
        try:
            self._source.fetch(job, version, files)
            self._source.read(files, self._contracts[job])
        except (RuntimeError, ValueError, OSError) as error:
            return self._once(job, version, f"{job}: agent version {version}: {error}; the present agent stays")
        new = self._folder / f".{job}.json"
        new.write_text(json.dumps({"version": version, "files": str(files)}))
        os.replace(new, _pointer(self._folder, job))
        return self._once(job, version, f"{job}: agent is version {version}")

    def _once(self, job: str, what: str, said: str) -> str:
        if self._tried.get(job) == what:
            return ""
        self._tried[job] = what
        return said


class Agents(NamedTuple):
    """The workers' part: where the driver put the agents, and how they are read."""

    folder: Path
    read: Read


class Clock(NamedTuple):
    """Wall time, the job's own time, and how many seconds of the second pass in one of the first."""

    now_s: float
    job_s: float
    scale: float


class Decider(NamedTuple):
    """Who decides now: the policy, the version of its agent, and why it stands in for another (empty: it does not)."""

    policy: Policy
    version: str | None = None
    stand_in: str = ""


def decider(name: str, contract: Contract, clock: Clock, agents: Agents | None) -> Decider:
    """Who decides now for a job that was given the policy of that name."""
    try:
        if name not in LEARNED:
            return Decider(policy_of(name, contract, *clock))
        here = _pointed(name, contract.job, agents)
    except SettingsError as missing:
        return Decider(policy_of(STAND_IN, contract, *clock), None, f"{missing}; {STAND_IN} decides")
    assert agents is not None
    return Decider(_known(agents.read, here["files"], contract), here["version"])


def _pointed(name: str, job: str, agents: Agents | None) -> dict[str, str]:
    if agents is None or not (pointer := _pointer(agents.folder, job)).exists():
        raise SettingsError(f"{name} has no agent yet")
    found: dict[str, str] = json.loads(pointer.read_text())
    return found


@lru_cache(maxsize=32)
def _known(read: Read, files: str, contract: Contract) -> Policy:
    """Read once per worker process and version."""
    return read(Path(files), contract)


def _pointer(folder: Path, job: str) -> Path:
    return folder / f"{job}.json"
