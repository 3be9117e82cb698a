"""The parameters of a simulated streaming job, and those of many jobs as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from configs.contract import Planning
from configs.errors import CorrectableError
from models.policy.core.batch_time import LEAST_GUESS_S
from models.policy.core.capacity import Capacity, Floats, Integers, speed_table
from models.policy.planners.turns import quiet_s

DRAWS = 32
"""Quantiles that measured times are reduced to; the twin draws from these."""


class TwinError(CorrectableError, ValueError):
    """Something cannot be simulated; the message names the value and what to do."""


class ShortLoadError(TwinError):
    """A load is too short, or too much of it is missing; once there is more of it, it can be simulated."""


LOWEST = {
    "overhead_s": 0.0, "per_record_s": 1e-12, "trigger_s": 0.05, "cold_s": 0.0, "noise": 0.0, "warmup": 0.0,
    "warmup_batches": 0.1, "rewind_s": 0.0, "latency_target_s": 0.1, "batch_rows": 1.0,
    "least": 1, "most": 1, "cores": 1, "tasks": 1,
}  # fmt: skip
"""Least values of the fields of a `TwinJob`; integers for fields that must be whole."""


@dataclass(frozen=True)
class TwinJob:
    """A streaming job: batches take `overhead_s + per_record_s * rows / speed(executors)` seconds.

    Attributes:
        overhead_s: seconds of a batch that no executor shortens.
        per_record_s: seconds that one slot needs per record.
        least, most: bounds of the number of executors.
        cores: slots per executor.
        tasks: tasks of the heavy stage; slots beyond this number add no speed.
        scaling: exponent of speed in slots, above 0 and at most 1 (measured for a Kafka mapper: 0.83).
        trigger_s: trigger interval in seconds; a batch begins at a multiple of it, or when the batch before has ended.
        batch_rows: most records of a batch.
        startup_s: measured seconds from the request of an executor until it is registered; the twin draws from them.
        cold_s: seconds by which the first task of a new executor, and with it the batch, takes longer.
        noise: standard deviation of the logarithm of a batch's duration.
        warmup: share by which the first batch of a query takes longer, because driver and executors are cold.
        warmup_batches: batches with records after which 1/e of the warm-up is left.
        restart_s: measured seconds without any work at each change, for engines that restart; empty: no restarts.
        rewind_s: seconds of load that are read again after a restart, as from the last checkpoint.
        catch_up: a backlog is worked off at this multiple of the load at most, however many executors there are.
        latency_target_s: seconds from event time to committed result.

    Raises:
        TwinError: a value out of its range; the message names it and the range.
    """

    overhead_s: float
    per_record_s: float
    least: int = 1
    most: int = 20
    cores: int = 1
    tasks: int = 64
    scaling: float = 1.0
    trigger_s: float = 1.0
    batch_rows: float = math.inf
    startup_s: tuple[float, ...] = (60.0,)
    cold_s: float = 0.0
    noise: float = 0.0
    warmup: float = 0.0
    warmup_batches: float = 10.0
    restart_s: tuple[float, ...] = ()
    rewind_s: float = 0.0
    catch_up: float = math.inf
    latency_target_s: float = 10.0

    def __post_init__(self) -> None:
        for name, lowest in LOWEST.items():
            value, whole = getattr(self, name), isinstance(lowest, int)
            if (
                not value >= lowest
                or (math.isinf(value) and name != "batch_rows")
                or (whole and not isinstance(value, Integral))
            ):
                raise TwinError(f"{name}={value}: a {'whole ' * whole}number of at least {lowest:g} is expected")
        if not self.catch_up > 1:
            raise TwinError(f"catch_up={self.catch_up}: above 1, or a backlog is never worked off")
        if self.least > self.most:
            raise TwinError(f"least={self.least}, most={self.most}: 1 <= least <= most is expected")
        if not 0 < self.scaling <= 1:
            raise TwinError(f"scaling={self.scaling}: above 0 and at most 1; a falling capacity curve has no optimum")
        for name in ("startup_s", "restart_s"):
            if any(not (math.isfinite(s) and s >= 0) for s in getattr(self, name)):
                raise TwinError(f"{name}={getattr(self, name)}: finite seconds of at least 0 are expected")
        if not self.startup_s:
            raise TwinError("startup_s=(): at least one measured start-up delay is expected")

    @property
    def top(self) -> float:
        """Slots' worth of speed when every task has its own slot: `tasks ** scaling`."""
        return float(self.tasks**self.scaling)

    @property
    def warmup_kept(self) -> float:
        """Factor by which the warm-up shrinks with each batch."""
        return math.exp(-1.0 / self.warmup_batches)


class Belief(NamedTuple):
    """The batch model that a policy starts from before it has measured the job: the guesses of a contract's `Planning`.

    Attributes:
        overhead_s: seconds of a batch that no executor shortens.
        per_record_s: seconds that one slot needs per record.
        scaling: exponent of speed in slots.
        quiet_s: seconds after a raise in which batches teach nothing, until its executors have come (`quiet_s`).
    """

    overhead_s: float
    per_record_s: float
    scaling: float
    quiet_s: float = 0.0

    @classmethod
    def of(cls, planning: Planning) -> Belief:
        """Take the guesses from the planning section of a job's contract."""
        quiet = quiet_s(planning.lead_s, planning.start_growth)
        return cls(planning.overhead_s, planning.per_record_s, planning.scaling, quiet)

    @property
    def at_first(self) -> tuple[float, ...]:
        """What of it is in `BELIEVED`."""
        return max(self.overhead_s, LEAST_GUESS_S), self.per_record_s, self.quiet_s


TRUTH = (
    "overhead_s", "per_record_s", "least", "most", "trigger_s", "batch_rows", "cold_s", "noise", "latency_target_s",
    "top", "catch_up", "rewind_s", "warmup", "warmup_kept",
)  # fmt: skip
BELIEVED = ("guessed_overhead_s", "guessed_per_record_s", "quiet_s")
FACTS = np.dtype([(name, float) for name in (*TRUTH, *BELIEVED)], align=True)
"""A record of `TwinJobs.facts`: the truth, and behind it what is believed at first."""


class TwinJobs(NamedTuple):
    """Jobs as arrays, one row per run.

    Attributes:
        facts: (runs,) records of `FACTS`: the true parameters, then what is believed.
        speeds: (runs, N + 1) slots that 0 to N executors are worth.
        believed: (runs, N + 1) slots that a policy takes them to be worth.
        startup_s, restart_s: (runs, DRAWS) quantiles of the measured times; `restart_s` is NaN for engines that do not
            restart.
        alike: whether all rows of `believed` are equal.
    """

    facts: Any
    speeds: Floats
    believed: Floats
    startup_s: Floats
    restart_s: Floats
    alike: bool

    @property
    def worth(self) -> Floats:
        """`believed` in the shape that `Capacity` takes: one row if all runs have the same, else one per run."""
        return self.believed[:1] if self.alike else self.believed

    def capacity(self, batch_s: float) -> Capacity:
        """Return the true capacity of the jobs, for batches of `batch_s` seconds."""
        return Capacity(self.speeds, self.facts["overhead_s"], self.facts["per_record_s"], batch_s)

    def select(self, rows: Integers) -> TwinJobs:
        """Select runs by index; `alike` is kept as it was."""
        return TwinJobs._make([*(part[rows] for part in self[:-1]), self.alike])

    def groups(self, *more: Integers) -> list[Integers]:
        """Group the runs whose jobs, and whose entries in further (runs,) arrays, are equal.

        Args:
            more: (runs,) numbers that must be equal too, such as load rows or seeds.

        Returns:
            Per group the (n,) indices of its runs, rising.

        Raises:
            ValueError: no runs at all.
        """
        plain = self.facts.view(float).reshape(len(self.facts), -1)
        what = np.hstack([plain, self.speeds, self.startup_s, self.restart_s, *(part[:, None] for part in more)])
        alike = np.unique(np.nan_to_num(what, nan=-1.0), axis=0, return_inverse=True)[1].ravel()
        return [np.flatnonzero(alike == group) for group in range(alike.max() + 1)]


def stack(jobs: Sequence[TwinJob], beliefs: Belief | Sequence[Belief] | None = None) -> TwinJobs:
    """Turn jobs into arrays, one row per run.

    Args:
        jobs: at least one.
        beliefs: the batch model that policies start from, one for all or one per run; None: the defaults of `Planning`
            (overhead 0.6 s, 0.0055 s per record, scaling 1). It need not be true: policies measure the job as it runs.

    Returns:
        `facts` (runs,) records, `speeds` and `believed` (runs, N + 1) slots, N the most executors of any of the jobs,
        and `startup_s` and `restart_s` (runs, 32) quantiles, seconds.

    Raises:
        ValueError: no job, another number of beliefs than of jobs, or a belief with `scaling` outside (0, 1].
    """
    beliefs = Belief.of(Planning()) if beliefs is None else beliefs
    both = list(zip(jobs, [beliefs] * len(jobs) if isinstance(beliefs, Belief) else beliefs, strict=True))
    known = {one: i for i, one in enumerate(dict.fromkeys(both))}
    most = max(job.most for job, _ in known)
    facts = [(*(getattr(job, name) for name in TRUTH), *belief.at_first) for job, belief in known]
    believed = np.array([speed_table(most, job.cores, job.tasks, belief.scaling) for job, belief in known])
    each = TwinJobs(
        np.array(facts, FACTS), np.array([speed_table(most, job.cores, job.tasks, job.scaling) for job, _ in known]),
        believed, np.array([_parts(job.startup_s) for job, _ in known]),
        np.array([_parts(job.restart_s or (math.nan,)) for job, _ in known]),
        bool((believed == believed[0]).all()),
    )  # fmt: skip
    return each.select(np.array([known[one] for one in both], np.int64))


def _parts(measured: Sequence[float]) -> Floats:
    return np.quantile(np.asarray(measured, float), (np.arange(DRAWS) + 0.5) / DRAWS)
