"""Fit a job's parameters, with confidence intervals, to measured batches and executor start-ups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from models.policy.core.capacity import Floats, Integers, parallelism
from models.twin.calibration.measurements import MeasuredBatches, Startups
from models.twin.sim.job import TwinError, TwinJob

BATCHES = 20
"""Least number of warm batches for a fit."""
DRAWS = 200
SURE = 0.5
"""A parameter whose 95 % interval is wider than this share of its value is unsure."""
SMALL_WARMUP = 0.2
"""The interval of a smaller warm-up needs only be as narrow as that of a warm-up of this share."""
NAMES = ("overhead_s", "per_record_s", "scaling", "warmup", "warmup_batches")
"""Fitted fields of a `TwinJob`, in the order of a fit's columns; the noise is the next one."""
EARLY, FRESH = 20, 10
"""A warm-up is fitted if a query's first `EARLY` batches include at least `FRESH` measured ones."""
LEAST_SCALING = 0.2
_SOFT = 0.25


class UnfinishedFitError(TwinError):
    """Too little was measured for a fit; the message says what is missing and where it comes from."""


class Fitted(NamedTuple):
    """A fitted job and how certain its parameters are.

    Attributes:
        job: the parameters.
        between: central 95 % intervals by the name of the parameter; (0, inf) where nothing was measured.
        unsure: names of parameters that the measurements do not determine.
        batches, startups: how many of each were used.
    """

    job: TwinJob
    between: dict[str, tuple[float, float]]
    unsure: tuple[str, ...]
    batches: int
    startups: int


class _Plain(NamedTuple):
    """(B,) records, slots, batches before, and seconds of batches without a new executor."""

    rows: Floats
    worth: Floats
    number: Floats
    duration: Floats


def fit_job(batches: MeasuredBatches, startups: Startups, known: TwinJob, draws: int = DRAWS) -> Fitted:
    """Fit a job's parameters to its measured batches and executor start-ups.

    Durations of batches without a new executor are fitted by robust least squares of their logarithms (`normal_s`);
    `cold_s` is the median of what batches with a new executor took longer. The first batch of a query is left out.
    `scaling` needs batches with two numbers of slots and the warm-up needs ten of a query's first 20 batches; else they
    are 1 and 0 and named in `unsure`. Intervals are central 95 % intervals of a moving-block bootstrap of the batches
    (Künsch 1989) and of a bootstrap of the start-ups; the same arguments give the same result.

    Args:
        batches: (B,) start_s, end_s, rows, executors, number; at least 20 with records and without a new executor.
        startups: (S,) requested_s, registered_s, batch (index into `batches`); at least one that was requested.
        known: what is configured: bounds, cores, tasks, trigger, rows per batch, latency target; the rest is replaced.
        draws: bootstrap samples of the batches, at least 1.

    Returns:
        The job; the intervals by parameter name; the names of those wider than half their value, or that nothing shows;
        and the numbers of batches and start-ups used.

    Raises:
        UnfinishedFitError: too few batches, or no start-up.
        TwinError: an executor that was registered before it was requested.
        IndexError: `startups.batch` names a batch that there is not.
        ValueError: no draws.
    """
    usual = (batches.rows >= 1) & (batches.executors >= 1) & (batches.duration_s > 0) & (batches.number > 0)
    usual[startups.batch[startups.batch >= 0]] = False
    delays, warm = startups.lead_times_s(), batches.select(usual)
    _enough(len(warm.rows), len(delays))
    seen = _Plain(warm.rows, _slots(known, warm.executors), warm.number, warm.duration_s)
    fresh = int((seen.number < EARLY).sum()) >= FRESH
    free = np.array([True, True, len(np.unique(seen.worth)) > 1, fresh, fresh])
    names = (*NAMES, "noise")
    job = replace(known, **dict(zip(names, _solved(seen, free).tolist(), strict=True)))
    longer = _longer(batches, startups, job)
    cold_s = float(np.median(longer)) if len(longer) else 0.0
    job = replace(job, startup_s=tuple(round(float(s), 3) for s in delays), cold_s=cold_s)
    chance = np.random.default_rng(0)
    drawn = [_solved(_Plain(*(part[at] for part in seen)), free) for at in _blocks(len(seen.rows), chance, draws)]
    between = dict(zip(names, map(_central, np.array(drawn).T), strict=True))
    if not fresh:
        between |= {"warmup": (0.0, math.inf), "warmup_batches": (0.0, math.inf)}
    chance = np.random.default_rng(0)
    between["startup_s"] = _central(_medians(delays, chance))
    between["cold_s"] = _central(_medians(longer, chance)) if len(longer) else (0.0, math.inf)
    unsure = [name for name, told in zip(NAMES, free, strict=True) if _wide(job, name, between[name], bool(told))]
    unsure += ["cold_s"] if len(longer) < 3 else []
    return Fitted(job, between, tuple(unsure), len(seen.rows), len(delays))


def normal_s(job: TwinJob, batches: MeasuredBatches) -> Floats:
    """Predict the seconds of batches without a new executor, (B,).

    `(overhead_s + per_record_s * rows / slots ** scaling) * (1 + warmup * exp(-number / warmup_batches))`
    """
    found = np.array([getattr(job, name) for name in NAMES], float)
    return _predicted(found, batches.rows, _slots(job, batches.executors), batches.number)


def _slots(job: TwinJob, executors: Floats) -> Floats:
    return np.array([parallelism(max(int(n), 1), job.cores, job.tasks) for n in executors], float)


def _predicted(p: Floats, rows: Floats, worth: Floats, number: Floats) -> Floats:
    return (p[0] + p[1] * rows / worth ** p[2]) * (1.0 + p[3] * np.exp(-number / p[4]))


def _solved(batches: _Plain, free: np.ndarray) -> Floats:
    """(6,) `NAMES` and the deviation of log durations from them, by least squares with outliers softened.

    Args:
        batches: as they are compared.
        free: (5,) which of `NAMES` they can tell.
    """
    duration = batches.duration
    quick, slow = float(np.quantile(duration, 0.1)), float(duration.max())
    work = float(np.median(duration)) / max(float(np.median(batches.rows / batches.worth)), 1e-9)
    found = np.array([0.0, 0.0, 1.0, 0.0, 10.0])  # what holds where it cannot be seen
    low, high, start, scale = np.array([
        (0.0, slow, 0.7 * quick, max(quick, 1e-3)),
        (1e-9, max(50 * work, 1e-6), max(0.3 * work, 1e-8), max(work, 1e-8)),
        (LEAST_SCALING, 1.0, 0.9, 1.0),
        (0.0, 10.0, 1.0, 1.0),
        (1.0, 60.0, 10.0, 10.0),
    ])[free].T  # fmt: skip

    def off(p: Floats) -> Floats:
        every = found.copy()
        every[free] = p
        return np.log(np.maximum(_predicted(every, *batches[:3]), 1e-6)) - np.log(duration)

    best = least_squares(off, start, bounds=(low, high), loss="soft_l1", f_scale=_SOFT, x_scale=scale)
    found[free] = best.x
    return np.append(found, np.sqrt(np.mean(off(best.x) ** 2)))


def _blocks(count: int, chance: np.random.Generator, draws: int) -> list[Integers]:
    size = math.ceil(math.sqrt(count))
    begins = [chance.integers(0, count - size + 1, math.ceil(count / size)) for _ in range(draws)]
    return [(begin[:, None] + np.arange(size)).reshape(-1)[:count] for begin in begins]


def _enough(batches: int, startups: int) -> None:
    missing = []
    if batches < BATCHES:
        missing.append(f"{batches} warm batches with records, {BATCHES} are needed: let the job run longer")
    if startups < 1:
        missing.append("no start-up of an executor: let the autoscaler act on the job, or request one")
    if missing:
        raise UnfinishedFitError("unfinished fit: " + "; ".join(missing))


def _longer(batches: MeasuredBatches, startups: Startups, job: TwinJob) -> Floats:
    """What batches with a new executor took longer: from the start, or from when the executor joined them.

    One value per batch: of several new executors, the last one counts.
    """
    last: dict[int, float] = {}
    for batch, registered, asked in zip(startups.batch, startups.registered_s, startups.requested_s, strict=True):
        if batch >= 0 and np.isfinite(asked):
            last[int(batch)] = max(registered, last.get(int(batch), -math.inf))
    joined_s, cold = np.array(list(last.values()), float), batches.select(np.array(list(last), np.int64))
    begun = np.where(joined_s > cold.start_s, joined_s, cold.start_s + normal_s(job, cold))
    return np.maximum(cold.end_s - begun, 0.0)


def _medians(values: Floats, chance: np.random.Generator) -> Floats:
    return np.median(values[chance.integers(0, len(values), (DRAWS, len(values)))], axis=1)


def _central(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _wide(job: TwinJob, name: str, between: tuple[float, float], told: bool) -> bool:
    """Whether a parameter is unsure; of hardly any warm-up nobody can say how soon it is over, nor has to."""
    if name == "warmup_batches" and job.warmup < SMALL_WARMUP:
        return False
    least = SMALL_WARMUP if name == "warmup" else 1e-12
    return between[1] - between[0] > SURE * max(getattr(job, name), least) or not told
