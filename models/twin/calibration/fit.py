"""A job's parameters from what its batches and its start-ups took, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.policy.core.capacity import Floats
from models.twin.calibration import durations
from models.twin.calibration.measurements import MeasuredBatches, Startups
from models.twin.sim.job import TwinError, TwinJob

BATCHES = 20
"""Fewer warm batches than these fit nothing."""
DRAWS = 200
SURE = 0.5
"""A parameter whose 95 % interval is wider than this share of it is not told apart."""
SMALL_WARMUP = 0.2
"""A warm-up below this is told from none when its interval is as narrow as this one's has to be."""


class UnfinishedFitError(TwinError):
    """Too little was measured; the message says what is missing and where it comes from."""


@dataclass(frozen=True)
class Fitted:
    """What was found.

    Attributes:
        job: the parameters.
        between: central 95 % intervals by the name of the parameter.
        unsure: names of parameters that the measurements do not tell apart from others.
        batches, startups: how many of each were used.
    """

    job: TwinJob
    between: dict[str, tuple[float, float]]
    unsure: tuple[str, ...]
    batches: int
    startups: int


def fit(batches: MeasuredBatches, startups: Startups, known: TwinJob, seed: int = 0, draws: int = DRAWS) -> Fitted:
    """The job whose batches and start-ups these are.

    The logarithm of the duration of a batch without a new executor is compared with that of the formula
    (`durations.normal_s`); one with a new executor gives `cold_s`, which is what it took longer. The first batch of a
    query is left out: it makes the plan and the state. Intervals: percentiles of a moving-block bootstrap of batches
    (Künsch 1989), and of start-ups.

    Args:
        batches: measured.
        startups: measured.
        known: what is configured: bounds, cores, tasks, trigger, rows per batch, latency target; the rest is replaced.
        seed: of the bootstrap.
        draws: of the bootstrap.

    Raises:
        UnfinishedFitError: too few batches or no start-up.
    """
    usual = (batches.rows >= 1) & (batches.executors >= 1) & (batches.duration_s > 0) & (batches.number > 0)
    usual[startups.batch[startups.batch >= 0]] = False
    delays = startups.leads_s()
    _enough(int(usual.sum()), len(delays))
    seen = durations.seen(known, batches.of(usual))
    found = durations.solved(seen)
    drawn = durations.redrawn(seen, np.random.default_rng(seed), draws)
    job = replace(known, **dict(zip((*durations.NAMES, "noise"), found.tolist(), strict=True)))
    longer = _longer(batches, startups, job)
    job = replace(
        job, startup_s=tuple(round(float(s), 3) for s in delays),
        cold_s=float(np.median(longer)) if len(longer) else 0.0,
    )  # fmt: skip
    between = {name: _central(drawn[:, i]) for i, name in enumerate((*durations.NAMES, "noise"))}
    for name, free in zip(durations.NAMES, seen.free, strict=True):
        if not free and name != "scaling":
            between[name] = (0.0, math.inf)
    chance = np.random.default_rng(seed)
    between["startup_s"] = _central(_medians(delays, chance))
    between["cold_s"] = _central(_medians(longer, chance)) if len(longer) else (0.0, math.inf)
    return Fitted(job, between, _unsure(job, between, seen.free, len(longer)), int(usual.sum()), len(delays))


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
    at = np.array(list(last), np.int64)
    joined_s, cold = np.array(list(last.values()), float), batches.of(at)
    begun = np.where(joined_s > cold.start_s, joined_s, cold.start_s + durations.normal_s(job, cold))
    longer: Floats = np.maximum(cold.end_s - begun, 0.0)
    return longer


def _medians(values: Floats, chance: np.random.Generator) -> Floats:
    medians: Floats = np.median(values[chance.integers(0, len(values), (DRAWS, len(values)))], axis=1)
    return medians


def _central(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _unsure(
    job: TwinJob, between: dict[str, tuple[float, float]], free: tuple[bool, ...], cold: int
) -> tuple[str, ...]:
    wide = []
    for name, told in zip(durations.NAMES, free, strict=True):
        low, high = between[name]
        least = SMALL_WARMUP if name == "warmup" else 1e-12
        if name == "warmup_batches" and job.warmup < SMALL_WARMUP:
            continue  # of hardly any warm-up nobody can say how soon it is over, nor has to
        if high - low > SURE * max(getattr(job, name), least) or not told:
            wide.append(name)
    return (*wide, *(("cold_s",) if cold < 3 else ()))
