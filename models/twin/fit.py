"""A job's parameters from what its batches and its start-ups took, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from models.policy.capacity import Floats, Integers, parallelism
from models.twin.job import Job, TwinError

BATCHES = 20
"""Fewer warm batches than these fit nothing."""
DRAWS = 200
IDLE_S = 0.25
"""A batch that began later than this after the one before waited for its trigger."""
SURE = 0.5
"""A parameter whose 95 % interval is wider than this share of it is not told apart."""
LEAST_SCALING = 0.2
_SOFT = 0.25


class UnfinishedFitError(TwinError):
    """Too little was measured; the message says what is missing and where it comes from."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Micro-batches in the order of their ends.

    Attributes:
        start_s, end_s: (B,) seconds on any one clock.
        rows: (B,) records.
        executors: (B,) that worked on it.
    """

    start_s: Floats
    end_s: Floats
    rows: Floats
    executors: Floats

    @property
    def duration_s(self) -> Floats:
        """(B,) seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True, eq=False)
class Startups:
    """Executors that came.

    Attributes:
        requested_s, registered_s: (S,) on the clock of the batches; the request is NaN where nobody asked (the first).
        batch: (S,) the first batch it worked on, an index into `Batches`; -1 for none.
    """

    requested_s: Floats
    registered_s: Floats
    batch: Integers


@dataclass(frozen=True)
class Fitted:
    """What was found.

    Attributes:
        job: the parameters.
        between: central 95 % intervals by the name of the parameter.
        unsure: names of parameters that the measurements do not tell apart from others.
        batches, startups: how many of each were used.
    """

    job: Job
    between: dict[str, tuple[float, float]]
    unsure: tuple[str, ...]
    batches: int
    startups: int


def joined(parts: Sequence[tuple[Batches, Startups]]) -> tuple[Batches, Startups]:
    """The measurements of several runs one after another."""
    before = np.cumsum([0, *(len(batches.rows) for batches, _ in parts)])
    batches = Batches(*(np.concatenate([getattr(b, name) for b, _ in parts]) for name in _BATCH))
    first = [np.where(s.batch >= 0, s.batch + at, -1) for (_, s), at in zip(parts, before[:-1], strict=True)]
    startups = [np.concatenate([getattr(s, name) for _, s in parts]) for name in ("requested_s", "registered_s")]
    return batches, Startups(startups[0], startups[1], np.concatenate(first).astype(np.int64))


_BATCH = ("start_s", "end_s", "rows", "executors")


def fit(batches: Batches, startups: Startups, known: Job, seed: int = 0, draws: int = DRAWS) -> Fitted:
    """The job whose batches and start-ups these are.

    The logarithm of a warm batch's duration is compared with that of `overhead_s + per_record_s * rows / speed`
    (least squares, outliers softened); a cold one, the first of a new executor, gives `cold_s`, which is what it took
    longer. Intervals: percentiles of a moving-block bootstrap of batches (Künsch 1989), and of start-ups.

    Args:
        batches: measured.
        startups: measured.
        known: what is configured: bounds, cores, tasks, trigger, rows per batch, latency target; the rest is replaced.
        seed: of the bootstrap.
        draws: of the bootstrap.

    Raises:
        UnfinishedFitError: too few batches or no start-up.
    """
    cold = np.zeros(len(batches.rows), bool)
    cold[startups.batch[startups.batch >= 0]] = True
    warm = ~cold & (batches.rows >= 1) & (batches.executors >= 1) & (batches.duration_s > 0)
    delays = (startups.registered_s - startups.requested_s)[np.isfinite(startups.requested_s)]
    _enough(int(warm.sum()), len(delays))
    rows, executors, duration = (x[warm] for x in (batches.rows, batches.executors, batches.duration_s))
    slots = np.array([parallelism(int(n), known.cores, known.tasks) for n in executors])
    free = len(np.unique(slots)) > 1
    found, noise = _service(rows, slots, duration, free)
    longer = _longer(batches, startups, known, found)
    drawn = _redrawn(rows, slots, duration, free, np.random.default_rng(seed), draws)
    overhead, per_record, scaling = (float(v) for v in found)
    job = replace(
        known, overhead_s=overhead, per_record_s=per_record, scaling=scaling, noise=noise,
        startup_s=tuple(round(float(s), 3) for s in np.sort(delays)),
        cold_s=float(np.median(longer)) if len(longer) else 0.0,
    )  # fmt: skip
    between = {name: _central(drawn[:, i]) for i, name in enumerate(("overhead_s", "per_record_s", "scaling", "noise"))}
    chance = np.random.default_rng(seed)
    between["startup_s"] = _central(_medians(delays, chance))
    between["cold_s"] = _central(_medians(longer, chance)) if len(longer) else (0.0, math.inf)
    return Fitted(job, between, _unsure(job, between, free, len(longer)), int(warm.sum()), len(delays))


def trigger(batches: Batches) -> float | None:
    """Seconds between triggers, where batches waited for one: the median time from one such start to the next.

    None if fewer than three pairs of batches waited: the trigger is then as short as batches are, or shorter.
    """
    idle = batches.start_s[1:] - batches.end_s[:-1] > IDLE_S
    both = idle[1:] & idle[:-1]
    between = np.diff(batches.start_s)[1:][both]
    return round(float(np.median(between)), 1) if len(between) >= 3 else None


def most_rows(batches: Batches) -> float:
    """Most records that a batch may have: where at least three batches reached it within 1 %; else infinity."""
    highest = float(batches.rows.max(initial=0.0))
    return highest if (batches.rows >= 0.99 * highest).sum() >= 3 else math.inf


def _enough(batches: int, startups: int) -> None:
    missing = []
    if batches < BATCHES:
        missing.append(f"{batches} warm batches with records, {BATCHES} are needed: let the job run longer")
    if startups < 1:
        missing.append("no start-up of an executor: let the autoscaler act on the job, or request one")
    if missing:
        raise UnfinishedFitError("unfinished fit: " + "; ".join(missing))


def _service(rows: Floats, slots: Floats, duration: Floats, free: bool) -> tuple[Floats, float]:
    """(3,) overhead, service time and exponent, and the deviation of log durations from them."""
    quick, slow = float(np.quantile(duration, 0.1)), float(duration.max())
    work = float(np.median(duration)) / max(float(np.median(rows / slots)), 1e-9)
    fixed = 1.0  # with one number of executors the exponent cannot be seen

    def off(p: Floats) -> Floats:
        predicted = p[0] + p[1] * rows / slots ** (p[2] if free else fixed)
        gap: Floats = np.log(np.maximum(predicted, 1e-6)) - np.log(duration)
        return gap

    low, high = [0.0, 1e-9, LEAST_SCALING], [slow, max(50 * work, 1e-6), 1.0]
    start = [0.7 * quick, max(0.3 * work, 1e-8), 0.9]
    keep = 3 if free else 2
    scale = [max(quick, 1e-3), max(work, 1e-8), 1.0]
    solved = least_squares(
        off, start[:keep], bounds=(low[:keep], high[:keep]), loss="soft_l1", f_scale=_SOFT, x_scale=scale[:keep]
    )
    found = np.append(solved.x, fixed)[:3]
    return found, float(np.sqrt(np.mean(off(found) ** 2)))


def normal_s(job: Job, rows: Floats, executors: Floats) -> Floats:
    """(B,) seconds of warm batches."""
    slots = np.array([parallelism(max(int(n), 1), job.cores, job.tasks) for n in executors])
    seconds: Floats = job.overhead_s + job.per_record_s * rows / slots**job.scaling
    return seconds


def _longer(batches: Batches, startups: Startups, known: Job, found: Floats) -> Floats:
    """What cold batches took longer: from the start, or from when the executor joined them.

    One value per batch: of several new executors, the last one counts.
    """
    job = replace(known, overhead_s=float(found[0]), per_record_s=max(float(found[1]), 1e-12), scaling=float(found[2]))
    last: dict[int, float] = {}
    for batch, registered, asked in zip(startups.batch, startups.registered_s, startups.requested_s, strict=True):
        if batch >= 0 and np.isfinite(asked):
            last[int(batch)] = max(registered, last.get(int(batch), -math.inf))
    normal, at = normal_s(job, batches.rows, batches.executors), np.array(list(last), np.int64)
    joined_s = np.array(list(last.values()), float)
    begun = np.where(joined_s > batches.start_s[at], joined_s, batches.start_s[at] + normal[at])
    longer: Floats = np.maximum(batches.end_s[at] - begun, 0.0)
    return longer


def _redrawn(
    rows: Floats, slots: Floats, duration: Floats, free: bool, chance: np.random.Generator, draws: int
) -> NDArray[np.float64]:
    """(draws, 4) overhead, service time, exponent and noise of batches drawn in blocks."""
    blocks = _blocks(len(rows), chance, draws)
    return np.array([np.append(*_service(rows[at], slots[at], duration[at], free)) for at in blocks])


def _blocks(count: int, chance: np.random.Generator, draws: int) -> Iterator[Integers]:
    size = math.ceil(math.sqrt(count))
    for _ in range(draws):
        begins = chance.integers(0, count - size + 1, math.ceil(count / size))
        yield (begins[:, None] + np.arange(size)).reshape(-1)[:count]


def _medians(values: Floats, chance: np.random.Generator) -> Floats:
    medians: Floats = np.median(values[chance.integers(0, len(values), (DRAWS, len(values)))], axis=1)
    return medians


def _central(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _unsure(job: Job, between: dict[str, tuple[float, float]], free: bool, cold: int) -> tuple[str, ...]:
    wide = []
    for name in ("overhead_s", "per_record_s", "scaling"):
        low, high = between[name]
        if high - low > SURE * max(getattr(job, name), 1e-12) or (name == "scaling" and not free):
            wide.append(name)
    return (*wide, *(("cold_s",) if cold < 3 else ()))
