"""Pools: the cores of a cluster that several jobs share, and what each of them has a right to.

`NAME.yaml` in the folder `pools`, beside that of the contracts; jobs of no pool have whatever their contracts allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from configs.bounds import JobName, Key, Name, Positive, Section, Whole
from configs.contract import Contract
from configs.errors import SettingsError
from configs.files import read_section
from tidecast.fields import JOB_NAME, LATEST_S

LISTED = "docs/pools.md"


class PoolJob(Section):
    """What a job has a right to.

    Attributes:
        weight: what a late second of it costs, beside those of the pool's other jobs.
        floor: executors that it is given whenever it asks for them, and at least those of its contract.
        memory_gb: of an executor, heap and overhead; counts where the pool states its memory.
        frozen: it keeps what it has.
    """

    weight: Positive = 1.0
    floor: Whole = 1
    memory_gb: Positive = 1.4
    frozen: bool = False


class Quota(Section):
    """Core-hours that a pool may take in an hour, and in a day, both of UTC; None: as many as its cores come to.

    They are used as they are needed, but for those that the floors take until the end, and who is frozen.
    """

    hourly_core_hours: Positive | None = None
    daily_core_hours: Positive | None = None


class Blackout(Section):
    """A time in which jobs keep what they have, whatever they ask for.

    Attributes:
        begin, end: with an offset from UTC, from 1970 until 2100.
        jobs: that it is for; empty: all.
    """

    begin: AwareDatetime
    end: AwareDatetime
    jobs: tuple[JobName, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Blackout:
        if not self.begin < self.end:
            raise ValueError(f"begin={self.begin.isoformat()} is not before end={self.end.isoformat()}; swap them")
        for key, at in ("begin", self.begin), ("end", self.end):
            if not 0 <= at.timestamp() <= LATEST_S:  # no message has such a time, and nobody would hear of the pool
                what = "is not from 1970 until 2100. State such a time, or `frozen: true` for good"
                raise ValueError(f"{key}={at.isoformat()} {what}.")
        return self

    def holds(self, job: str, now: datetime) -> bool:
        """Whether a job keeps what it has at a time."""
        return self.begin <= now < self.end and (not self.jobs or job in self.jobs)


def _address(url: str) -> str:
    """Return a URL with a host and a possible port; its parts are not told, as it may hold a secret."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is open, a port that is no number
        whole = False
    if not whole:
        raise ValueError("not an address that can be asked. Write it as http://HOST:PORT/PATH or https://HOST/PATH.")
    return url


class Veto(Section):
    """Who is asked before executors change hands.

    Attributes:
        url: gets a POST with the grants that change, and says with status 2xx that they may, with 403 that not.
        timeout_s: after which, as after any other answer, nothing changes: from the connection to the whole head of it.
    """

    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(_address)]
    timeout_s: Annotated[float, Field(gt=0, le=10)] = 2.0


class ClusterPool(Section):
    """A pool.

    Attributes:
        name: of the pool, and of the file.
        cores: of all executors of its jobs together.
        memory_gb: likewise; None: cores alone count.
        price_per_core_hour: in any currency, for `tidecast pool check`; None: nothing is said in money.
        jobs: by name.
        quota: beyond the cores.
        blackouts: times in which nothing changes.
        veto: who is asked before something changes; None: nobody.
        frozen: every job keeps what it has.
    """

    name: Name
    cores: Annotated[int, Field(ge=1, le=1_000_000)]
    memory_gb: Positive | None = None
    price_per_core_hour: Positive | None = None
    jobs: Annotated[Mapping[JobName, PoolJob], Field(min_length=1)]
    quota: Quota = Quota()
    blackouts: tuple[Blackout, ...] = ()
    veto: Veto | None = None
    frozen: bool = False

    def is_frozen(self, job: str, now: datetime) -> bool:
        """Whether a job keeps what it has at a time."""
        return self.frozen or self.jobs[job].frozen or any(one.holds(job, now) for one in self.blackouts)


def load_pool(name: str, folder: Path, contracts: Mapping[str, Contract]) -> ClusterPool:
    """Read and check the pool `<folder>/<name>.yaml`.

    Args:
        name: of the pool.
        folder: of the pools' files.
        contracts: of all jobs, by name.

    Raises:
        SettingsError: there is no such file, it cannot be read or is not YAML, or something in it is wrong: an unknown
            key, a name that no message may have, a job without a contract, floors beyond the pool, its quota or a job's
            own most, a weight of 0. The message names file, line, value and remedy.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml"))) or "none"
        raise SettingsError(f"pool {name!r}: there is no {path}. Known pools: {known}. See {LISTED}.")
    pool, read = read_section(path, ClusterPool, LISTED, "pool", f"name: {name}")
    wrong = sorted(
        (read.line_of(key), f"{'.'.join(map(str, key))}{what}") for key, what in _list_wrong(pool, name, contracts)
    )
    if wrong:
        raise SettingsError("\n".join(f"{path.name}, line {line}: {what}" for line, what in wrong))
    return pool


def read_pools(folder: Path, contracts: Mapping[str, Contract]) -> tuple[dict[str, ClusterPool], dict[str, str]]:
    """Read every pool in a folder; a wrong one stops no other, a missing folder has none.

    Of two pools that name the same job neither counts, as nobody knows which of them it belongs to.

    Returns:
        The pools that can be read, by name, and the error messages of the others, by name.
    """
    pools: dict[str, ClusterPool] = {}
    errors: dict[str, str] = {}
    for name in sorted(path.stem for path in folder.glob("*.yaml")):
        try:
            pools[name] = load_pool(name, folder, contracts)
        except SettingsError as error:
            errors[name] = str(error)
    for one in pools.values():
        for other in pools.values():
            if one is not other and (both := sorted({*one.jobs} & {*other.jobs})):
                errors[one.name] = (
                    f"{one.name}.yaml: {both[0]} is in pool {other.name}, too. Take it out of one of them."
                )
    return {name: pool for name, pool in pools.items() if name not in errors}, errors


def floor_cores(pool: ClusterPool, contracts: Mapping[str, Contract]) -> dict[str, int]:
    """Return the cores that each job of a pool has a right to, by name; without those that have no contract."""
    known = {job: (one, contracts[job].executors) for job, one in pool.jobs.items() if job in contracts}
    return {job: max(one.floor, bounds.min) * bounds.cores for job, (one, bounds) in known.items()}


def _list_wrong(pool: ClusterPool, name: str, contracts: Mapping[str, Contract]) -> Iterator[tuple[Key, str]]:
    """What does not go together: keys, and their values with the reason and the remedy."""
    if pool.name != name:
        yield ("name",), f"={pool.name!r}: the file's name and the pool's must be one. Rename one of them."
    if not JOB_NAME.pattern.fullmatch(pool.name):  # messages have it where others have a job's
        yield ("name",), f"={pool.name!r}: {JOB_NAME.words} are expected. Rename the file and the pool."
    cores, memory_gb = sum(floor_cores(pool, contracts).values()), 0.0
    for job, stated in pool.jobs.items():
        if (contract := contracts.get(job)) is None:
            remedy = f"Add {job}.yaml to the folder of contracts, or take it out."
            yield ("jobs", job), f": the job has no contract. {remedy}"
            continue
        bounds = contract.executors
        if stated.floor > bounds.max:
            what = f"={stated.floor}: its contract allows {bounds.max} executors. State as many or fewer."
            yield ("jobs", job, "floor"), what
        memory_gb += max(stated.floor, bounds.min) * stated.memory_gb
    floors = "floors (and the least executors of their contracts)"
    if cores > pool.cores:
        yield ("cores",), f"={pool.cores}: the jobs' {floors} come to {cores} cores. Lower floors, or take a job out."
    if pool.memory_gb is not None and memory_gb > pool.memory_gb:
        yield ("memory_gb",), f"={pool.memory_gb:g}: the jobs' {floors} come to {memory_gb:g} GB. Lower floors."
    quotas = ("hourly", 1, pool.quota.hourly_core_hours), ("daily", 24, pool.quota.daily_core_hours)
    for span, hours, core_hours in quotas:
        if core_hours is not None and core_hours < cores * hours:
            what = f"={core_hours:g}: the jobs' {floors} take {cores * hours}. State as many or more, or lower floors."
            yield ("quota", f"{span}_core_hours"), what
    for number, blackout in enumerate(pool.blackouts):
        for job in blackout.jobs:
            if job not in pool.jobs:
                known = ", ".join(pool.jobs)
                yield ("blackouts", number, "jobs"), f": {job} is no job of this pool. There are {known}."
