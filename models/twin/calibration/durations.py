"""How long batches take: the formula, and the parameters of it that measured batches give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from models.policy.core.capacity import Floats, Integers, parallelism
from models.twin.calibration.measurements import MeasuredBatches
from models.twin.sim.job import TwinJob

NAMES = ("overhead_s", "per_record_s", "scaling", "warmup", "warmup_batches")
"""Of a `TwinJob`, in the order of a fit's columns; the noise is the next one."""
EARLY, FRESH = 20, 10
"""A warm-up is seen in batches of which the query had done fewer than the first before; so many of them are needed."""
LEAST_SCALING = 0.2
MOST_WARMUP, MOST_WARMUP_BATCHES = 10.0, 60.0
_SOFT = 0.25
_COLD = 1.0
"""Where the search for a warm-up begins."""


def slots(job: TwinJob, executors: Floats) -> Floats:
    """(B,) tasks per wave of the heavy stage."""
    return np.array([parallelism(max(int(n), 1), job.cores, job.tasks) for n in executors], float)


def normal_s(job: TwinJob, batches: MeasuredBatches) -> Floats:
    """(B,) seconds of batches without a new executor.

    `(overhead_s + per_record_s * rows / slots ** scaling) * (1 + warmup * exp(-number / warmup_batches))`
    """
    found = np.array([getattr(job, name) for name in NAMES], float)
    return _predicted(found, batches.rows, slots(job, batches.executors), batches.number)


def _predicted(p: Floats, rows: Floats, worth: Floats, number: Floats) -> Floats:
    seconds: Floats = (p[0] + p[1] * rows / worth ** p[2]) * (1.0 + p[3] * np.exp(-number / p[4]))
    return seconds


@dataclass(frozen=True, eq=False)
class PlainBatches:
    """Batches without a new executor, as the fit compares them.

    Attributes:
        rows, worth, number, duration: (B,) records, slots, batches before, and seconds.
        free: which of `NAMES` they can tell.
    """

    rows: Floats
    worth: Floats
    number: Floats
    duration: Floats
    free: tuple[bool, ...]

    def at(self, which: Integers) -> PlainBatches:
        """Some of them, compared in the same way."""
        return PlainBatches(self.rows[which], self.worth[which], self.number[which], self.duration[which], self.free)


def seen(job: TwinJob, batches: MeasuredBatches) -> PlainBatches:
    """What the batches can tell: the exponent from two numbers of slots on, a warm-up only from batches of its time."""
    worth = slots(job, batches.executors)
    fresh = int((batches.number < EARLY).sum()) >= FRESH
    free = (True, True, len(np.unique(worth)) > 1, fresh, fresh)
    return PlainBatches(batches.rows, worth, batches.number, batches.duration_s, free)


def solved(batches: PlainBatches) -> Floats:
    """(6,) `NAMES` and the deviation of log durations from them, by least squares with outliers softened."""
    duration, free = batches.duration, np.array(batches.free)
    quick, slow = float(np.quantile(duration, 0.1)), float(duration.max())
    work = float(np.median(duration)) / max(float(np.median(batches.rows / batches.worth)), 1e-9)
    fixed = np.array([0.0, 0.0, 1.0, 0.0, 10.0])  # what holds where it cannot be seen
    low = np.array([0.0, 1e-9, LEAST_SCALING, 0.0, 1.0])
    high = np.array([slow, max(50 * work, 1e-6), 1.0, MOST_WARMUP, MOST_WARMUP_BATCHES])
    start = np.array([0.7 * quick, max(0.3 * work, 1e-8), 0.9, _COLD, 10.0])
    scale = np.array([max(quick, 1e-3), max(work, 1e-8), 1.0, 1.0, 10.0])

    def off(p: Floats) -> Floats:
        every = fixed.copy()
        every[free] = p
        predicted = _predicted(every, batches.rows, batches.worth, batches.number)
        gap: Floats = np.log(np.maximum(predicted, 1e-6)) - np.log(duration)
        return gap

    best = least_squares(
        off, start[free], bounds=(low[free], high[free]), loss="soft_l1", f_scale=_SOFT, x_scale=scale[free]
    )
    fixed[free] = best.x
    return np.append(fixed, np.sqrt(np.mean(off(best.x) ** 2)))


def redrawn(batches: PlainBatches, chance: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """(draws, 6) `solved` for batches drawn in blocks (moving-block bootstrap, Künsch 1989)."""
    return np.array([solved(batches.at(at)) for at in _blocks(len(batches.rows), chance, draws)])


def _blocks(count: int, chance: np.random.Generator, draws: int) -> Iterator[Integers]:
    size = math.ceil(math.sqrt(count))
    for _ in range(draws):
        begins = chance.integers(0, count - size + 1, math.ceil(count / size))
        yield (begins[:, None] + np.arange(size)).reshape(-1)[:count]
