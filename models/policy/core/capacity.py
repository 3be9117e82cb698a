"""What a number of executors can do: batch time as overhead plus work, learned from busy batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BUSY_SHARE = 0.5
"""A batch teaches capacity only if at least this share of its time was work, or by the model must have been."""
DECAY = 0.95
"""Factor by which each batch discounts the sums of older ones."""
PRIOR_BATCHES = 3  # batches of one second of work that the first guess weighs as much as
COLD_BATCHES = 2
"""Batches after a scale-up that teach no capacity, because new JVMs are slow."""
MOST_CORRECTION = 5.0
"""The service time learned stays within this factor of the contract's first guess."""

ROUNDING_SHARE = 1e-9
"""Share of a number of executors that is taken for a rounding error."""


@dataclass(frozen=True)
class BatchModel:
    """Batch time of a streaming query: `overhead_s + per_record_s * rows / parallelism`, in seconds.

    Attributes:
        overhead_s, per_record_s: as learned so far; `per_record_s` are seconds of one slot.
        prior_overhead_s, prior_per_record_s: the contract's first guess.
        xx, xd: discounted least-squares sums of busy batches: x = rows / parallelism, d = duration minus overhead.
    """

    overhead_s: float
    per_record_s: float
    prior_overhead_s: float
    prior_per_record_s: float
    xx: float = 0.0
    xd: float = 0.0

    @classmethod
    def guess(cls, overhead_s: float, per_record_s: float) -> BatchModel:
        """Create a model from a first guess, in seconds, that no batch has corrected yet."""
        return cls(overhead_s, per_record_s, overhead_s, per_record_s)


def parallelism(executors: int, cores: int, tasks: int) -> float:
    """Return the mean number of tasks per wave when `tasks` equal tasks run on `executors * cores` slots.

    The last wave may be half empty: 10 tasks on 8 slots are 5 per wave. 0 without slots.
    """
    slots = executors * cores
    return tasks / math.ceil(tasks / slots) if slots > 0 else 0.0


def tells_capacity(overhead_s: float, per_record_s: float, rows: float, slots: float, duration_s: float) -> bool:
    """Return whether at least `BUSY_SHARE` of a batch's duration was work, or by the model must have been.

    So a model that is wrong is corrected: one that promises too much by batches that take longer, and one that promises
    too little, which would keep executors that it never sees busy, by batches that are done sooner than it can explain.
    False without rows or slots.

    Args:
        overhead_s: fixed part of a batch.
        per_record_s: seconds of one slot per record, as learned so far.
        rows: of the batch.
        slots: parallel slots that it ran on.
        duration_s: of the batch.
    """
    if slots <= 0 or rows <= 0:
        return False
    return max(duration_s - overhead_s, per_record_s * rows / slots) >= BUSY_SHARE * duration_s


def estimate_per_record_s(xx: float, xd: float, guess: float) -> float:
    """Estimate the seconds of one slot per record, kept within a factor of `MOST_CORRECTION` of `guess`.

    Ridge regression of (duration - overhead) on rows / slots; the guess weighs as much as `PRIOR_BATCHES` batches of
    one second of work, so that a slow batch of a few rows hardly moves it.

    Args:
        xx: sum of x * x as in `BatchModel`.
        xd: sum of x * d as in `BatchModel`.
        guess: seconds per record, above 0.
    """
    prior = PRIOR_BATCHES / guess**2
    return min(max((xd + prior * guess) / (xx + prior), guess / MOST_CORRECTION), guess * MOST_CORRECTION)


def learn_from_batch(model: BatchModel, rows: int, slots: float, duration_s: float) -> BatchModel:
    """Return the model after one more busy batch; only `per_record_s` and the sums change.

    Overhead stays at its prior: over the narrow range of one load the two cannot be told apart.

    Args:
        model: so far.
        rows: records of the batch.
        slots: parallel slots that it ran on, above 0.
        duration_s: its duration.
    """
    x, d = rows / slots, max(duration_s - model.overhead_s, 0.0)
    xx, xd = DECAY * model.xx + x * x, DECAY * model.xd + x * d
    return replace(model, per_record_s=estimate_per_record_s(xx, xd, model.prior_per_record_s), xx=xx, xd=xd)


@dataclass(frozen=True, eq=False)
class Capacity:
    """What numbers of executors sustain, for many runs: `speed(n) / per_record_s * (1 - overhead_s / batch_s)`.

    Attributes:
        speeds: (runs or 1, N + 1) slots that 0 to N executors are worth, never falling (`speed_table`).
        overhead_s: (runs,) seconds of a batch that no executor shortens.
        per_record_s: (runs,) seconds of one slot per record, as learned so far.
        batch_s: seconds that batches should take.
    """

    speeds: Floats
    overhead_s: Floats
    per_record_s: Floats
    batch_s: Floats | float

    def select(self, runs: slice | Integers) -> Capacity:
        """Return the capacity of some of the runs; `batch_s` is one number for all of them."""
        one = len(self.speeds) == 1
        some = object.__new__(Capacity)
        # With what is worked out for all of them, at a third of the time: a backtest does this 10 times a look.
        vars(some).update(
            speeds=self.speeds if one else self.speeds[runs], overhead_s=self.overhead_s[runs],
            per_record_s=self.per_record_s[runs], batch_s=self.batch_s, per_slot_rps=self.per_slot_rps[runs],
            useful_executors=self.useful_executors if one else self.useful_executors[runs],
        )  # fmt: skip
        return some

    @cached_property
    def per_slot_rps(self) -> Floats:
        """(runs,) records/s that one slot sustains."""
        rate: Floats = (1 - np.minimum(self.overhead_s / self.batch_s, 0.9)) / self.per_record_s
        return rate

    @cached_property
    def useful_executors(self) -> Floats:
        """(runs or 1,) number of executors beyond which another one would find no task."""
        below = self.speeds < self.speeds[:, -1:]
        count: Floats = below @ np.ones(below.shape[1])
        return count

    def sustained_rps(self, executors: Floats) -> Floats:
        """Return (runs,) records/s that (runs,) executors, not NaN, process without a growing backlog.

        Numbers are clipped to 0 to N and cut to whole ones.
        """
        at = np.minimum(np.maximum(executors, 0), self.speeds.shape[1] - 1).astype(np.int64)
        slots = self.speeds[np.arange(len(at)), at] if len(self.speeds) > 1 else self.speeds[0][at]
        rate: Floats = slots * self.per_slot_rps
        return rate

    def executors_for(self, rps: Floats, least: Floats, most: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Find the fewest executors that sustain a rate, that is, process it without a growing backlog.

        Args:
            rps: (..., runs) records/s; not NaN.
            least: (runs,) lower bound of the answer.
            most: (runs,) upper bound; executors that would find no task are left out, too.

        Returns:
            (..., runs) whole executors as floats, and (..., runs) whether a bound or the task count cut them short.
        """
        need = rps / self.per_slot_rps
        slots = need * (1 - 1e-12)
        one = len(self.speeds) == 1
        below = np.searchsorted(self.speeds[0], slots) if one else (self.speeds < slots[..., None]).sum(axis=-1)
        found = below.astype(np.float64)
        top = np.maximum(np.minimum(most, self.useful_executors), least)
        return np.minimum(np.maximum(found, least), top), found > top


def speed_table(most: int, cores: int, tasks: int, scaling: float = 1.0) -> Floats:
    """Return (most + 1,) slots that 0 to `most` executors are worth: `parallelism ** scaling`, never falling.

    `parallelism` is the mean number of tasks per wave: 10 tasks on 8 slots run in two waves and are worth 5 slots.

    Args:
        most: executors, at least 0.
        cores: slots per executor.
        tasks: of the heavy stage, at least 1.
        scaling: exponent above 0 and at most 1; 1 where twice the slots do twice the work.

    Raises:
        ValueError: another exponent.
        ZeroDivisionError: no tasks.
    """
    if not 0 < scaling <= 1:
        raise ValueError(f"scaling={scaling}: capacity grows with executors to a power above 0 and at most 1")
    worth = np.array([parallelism(n, cores, tasks) ** scaling for n in range(most + 1)])
    rising: Floats = np.maximum.accumulate(worth)
    return rising


def round_up(executors: Floats) -> Floats:
    """Round (runs,) executors up; an excess of `ROUNDING_SHARE`, a rounding error, does not count as one more."""
    up: Floats = np.ceil(executors - ROUNDING_SHARE * np.maximum(executors, 1.0))
    return up
