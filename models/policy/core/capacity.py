"""What a number of executors can do, given what a batch's overhead and its work per record are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDING_SHARE = 1e-9
"""Share of a number of executors that is taken for a rounding error."""


def parallelism(executors: int, cores: float, tasks: int) -> float:
    """Return the mean number of tasks per wave when `tasks` equal tasks run on `executors * cores` slots.

    The last wave may be half empty: 10 tasks on 8 slots are 5 per wave. 0 without slots.
    """
    slots = executors * cores
    return tasks / math.ceil(tasks / slots) if slots > 0 else 0.0


def useful_executors(tasks: int, cores: int, least: int, most: int) -> int:
    """Return the fewest executors on whose cores all `tasks` run at once, within `least` to `most`: more are idle."""
    return min(max(math.ceil(tasks / cores), least), most)


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


@lru_cache(maxsize=256)
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
