"""Fit an engine that restarts at every change, from a recording: what a change costs and how the job recovers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.calibration.fit import LEAST_SCALING, UnfinishedFitError
from models.twin.sim.job import TwinJob

ALONE_S = 45
"""A change stands alone if no other lies within so many seconds before and after it."""
CHANGES = 10
"""Least number of single changes for a fit."""
_FINE = 1000
"""Tasks per worker: a continuous engine shares its work evenly, whatever the number of workers."""
CALM_S = 120
"""Seconds after a change when the engine is taken for warm and without a backlog."""
_SMOOTH_S = 30
SLICE_S = 0.25
"""A continuous engine is simulated with this trigger interval, and batches of as much at its highest capacity."""


class Recording(NamedTuple):
    """What was recorded in each second of a run; NaN where there is no sample.

    Attributes:
        rate: (T,) records/s produced.
        latency_s: (T,) seconds, of the records that came out in the second.
        busy: (T,) share of the processors' time that was used.
        workers: (T,) executors or task managers; without NaN, which would count as changes.
    """

    rate: Floats
    latency_s: Floats
    busy: Floats
    workers: Floats

    def part(self, begin: int, end: int) -> Recording:
        """Select the seconds [begin, end)."""
        return Recording(*(column[begin:end] for column in self))

    @property
    def changes(self) -> Integers:
        """Seconds (indices) at which the number of workers differs from the second before."""
        return np.flatnonzero(np.diff(self.workers) != 0) + 1


class Outages(NamedTuple):
    """The effects of C single changes of the number of workers.

    Attributes:
        lost_s: (C,) seconds by which latency rose over its calm value: the time without work, and what was read again.
        down_s: (C,) seconds from the change to the highest latency.
        back_s: (C,) seconds from there until latency is under 1.5 times its calm value: `lost_s` was worked off.
        rate, workers: (C,) mean records/s meanwhile, and the workers after the change.
        calm_s: median latency in seconds.
    """

    lost_s: Floats
    down_s: Floats
    back_s: Floats
    rate: Floats
    workers: Floats
    calm_s: float


def measure_outages(seen: Recording) -> Outages:
    """Measure each change of the number of workers that stands alone: no other within 45 s before and after.

    Left out are those after which latency did not pass twice its median, or was not below 1.5 times it in 45 s.

    Args:
        seen: (T,) per second: rate (records/s), latency_s (NaN where unknown), workers (no NaN).

    Returns:
        Arrays (C,) in the order of time: seconds by which latency rose, until its peak, and from there until calm; mean
        records/s meanwhile; workers after. Empty without such a change. And the median latency in seconds.
    """
    calm, changes = float(np.nanmedian(seen.latency_s)), seen.changes
    rows = []
    gaps = np.diff(changes, prepend=-ALONE_S, append=len(seen.rate) + ALONE_S)
    for at in changes[(np.minimum(gaps[:-1], gaps[1:]) >= ALONE_S) & (changes + ALONE_S <= len(seen.rate))]:
        latency = seen.latency_s[at : at + ALONE_S]
        peak = int(np.nan_to_num(latency).argmax())  # a second without a sample is neither the peak nor calm
        back = np.flatnonzero(latency[peak:] < 1.5 * calm)
        if latency[peak] > 2 * calm and len(back):
            rate = float(seen.rate[at : at + peak + int(back[0]) + 1].mean())
            rows.append((latency[peak] - calm, peak, back[0], rate, seen.workers[at]))
    return Outages._make([*np.array(rows, np.float64).reshape(-1, 5).T, calm])


def estimate_capacity(seen: Recording) -> tuple[float, float]:
    """Estimate what workers sustain (process without a growing backlog) from seconds over 120 s after the last change.

    Per number of workers with 60 such seconds or more: the median of the load divided by the busy share (mean of 30 s,
    above 0.01). A line through the logarithms gives the exponent; with a single number of workers it is 1.

    Args:
        seen: (T,) per second, T at least 30: rate (records/s), busy (0 to 1), workers; NaN leaves out what it touches.

    Returns:
        Records/s of one worker at full use, and the exponent in the number of workers, 0.2 to 1.

    Raises:
        UnfinishedFitError: no number of workers has 60 such seconds.
        ValueError: fewer than 30 seconds.
    """
    seconds = np.arange(len(seen.rate))
    since = seconds - np.append(0, seen.changes)[np.searchsorted(seen.changes, seconds, side="right")]
    smooth = np.convolve(seen.busy, np.full(_SMOOTH_S, 1 / _SMOOTH_S), mode="same")
    calm = (since > CALM_S) & (smooth > 0.01) & (seen.rate > 0)
    numbers = [n for n in np.unique(seen.workers[calm]) if (calm & (seen.workers == n)).sum() >= 2 * _SMOOTH_S]
    if not numbers:
        raise UnfinishedFitError(f"unfinished fit: no stretch of {CALM_S} s without a change; take a calmer recording")
    level = [np.median(seen.rate[at] / smooth[at]) for at in (calm & (seen.workers == n) for n in numbers)]
    x, y = np.log(numbers), np.log(level)
    scaling = float(np.clip(np.polyfit(x, y, 1)[0], LEAST_SCALING, 1.0)) if len(numbers) > 1 else 1.0
    return float(np.exp(np.median(y - scaling * x))), scaling


def fit_restarting_job(seen: Recording, least: int, most: int, target_s: float) -> TwinJob:
    """Fit the simulated job of an engine that restarts at every change, such as Flink, from a recording.

    Restart times are those of changes with no other within 45 s, from the change to the highest latency; what latency
    rose beyond that is read again (median). A backlog is worked off at the multiple of the load seen over all of them.

    Args:
        seen: (T,) per second: rate (records/s), latency_s, busy (0 to 1), workers; NaN without a sample.
        least: fewest workers.
        most: most workers.
        target_s: latency target in seconds.

    Raises:
        UnfinishedFitError: fewer than 10 such changes, or no number of workers with 60 s over 120 s after a change.
        TwinError: bounds or a target that no `TwinJob` can have.
        ValueError: a recording of fewer than 30 s.
    """
    found = measure_outages(seen)
    if len(found.lost_s) < CHANGES:
        raise UnfinishedFitError(
            f"unfinished fit: {len(found.lost_s)} changes of workers stand {ALONE_S} s apart from others and were "
            f"recovered from; {CHANGES} are needed: take a longer recording"
        )
    slot_rps, scaling = estimate_capacity(seen)
    return TwinJob(
        overhead_s=0.0, per_record_s=1 / slot_rps, least=least, most=most, tasks=most * _FINE, scaling=scaling,
        trigger_s=SLICE_S, batch_rows=max(slot_rps * most**scaling * SLICE_S, 1.0),
        restart_s=tuple(found.down_s.tolist()), rewind_s=float(np.median(np.maximum(found.lost_s - found.down_s, 0.0))),
        catch_up=1 + float(found.lost_s.sum() / found.back_s.sum()), latency_target_s=target_s,
    )  # fmt: skip


def share_over_target(latency_s: Floats, target_s: float) -> float:
    """Return the share of the seconds with a sample in which latency is over the target; NaN without samples."""
    known = latency_s[np.isfinite(latency_s)]
    return float((known > target_s).mean()) if len(known) else float("nan")


def latency_from_waiting(waiting_s: Floats, calm_s: float) -> Floats:
    """Raise the twin's waiting times (..., T) by what their median lacks to the measured calm latency, in seconds."""
    return waiting_s + max(calm_s - float(np.median(waiting_s)), 0.0)
