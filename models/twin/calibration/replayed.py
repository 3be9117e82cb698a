"""Replay a recorded load and recorded decisions in the twin, and compare the curves with the recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.sim import kernel
from models.twin.sim.given import Load
from models.twin.sim.job import TwinError, TwinJob, stack
from models.twin.sim.run import set_targets
from models.twin.sim.state import begin

PART = 20_000
"""Steps that are simulated at a time: there is room for a commit in each."""


class ReplayedCurves(NamedTuple):
    """Measured or simulated curves, one value per second; simulated ones have a first axis of runs.

    Attributes:
        lag: (..., T) records not committed at the end of the second.
        executors: (..., T) that run at its end.
        latency_s: (..., T) seconds, of the slowest record produced in the second; NaN where none was, or none was
            committed.
        waiting_s: (..., T) age in seconds of the oldest record not committed at its end.
    """

    lag: Floats
    executors: Floats
    latency_s: Floats
    waiting_s: Floats


def replay_recording(
    job: TwinJob, arrived: Floats, at_s: Floats, targets: Sequence[int] | Integers, executors: int, seeds: Integers,
    step_s: float = 0.1, batches: int = 0,
) -> ReplayedCurves:  # fmt: skip
    """Simulate a job under recorded arrivals and recorded changes of the target.

    Args:
        job: the simulated one.
        arrived: (T + 1,) records produced before each second.
        at_s: (D,) rising seconds since second 0 at which the target changed; rounded to steps, of two in one the last
            counts.
        targets: (D,) executors asked for from then on.
        executors: at second 0.
        seeds: (runs,) of start-up delays and batch noise; at least one.
        step_s: seconds between the moments at which decisions and commits are placed; one divided by a whole number.
        batches: with records that the query had done before second 0.

    Returns:
        Curves of shape (runs, T), one value per second: lag (records), executors, latency_s and waiting_s (seconds).

    Raises:
        TwinError: arrivals that fall or are not finite, or targets beyond the job's bounds.
        ValueError: `at_s` and `targets` differ in length, or no seeds.
        ZeroDivisionError: a `step_s` of 0.
    """
    asked = np.asarray(targets, np.int64)
    if len(asked) and not (job.least <= asked.min() and asked.max() <= job.most):
        raise TwinError(f"targets {asked.min()} to {asked.max()}: the job has {job.least} to {job.most} executors")
    jobs, runs, seconds = stack([job] * len(seeds)), len(seeds), len(arrived) - 1
    state = begin(jobs, np.full(runs, float(executors)), seeds, batches)
    load = Load(np.ascontiguousarray(arrived, float)[None], np.zeros(runs, np.int64))
    steps, decided = round(1 / step_s), dict(zip(np.rint(at_s / step_s).astype(int).tolist(), asked, strict=True))
    (lag, there), every = np.zeros((2, runs, seconds)), seconds * steps
    noted, many = np.empty((runs, PART, 2)), np.zeros(runs, np.int64)
    commits: list[list[Floats]] = [[np.empty((0, 2))] for _ in range(runs)]
    begins = sorted({*range(0, every, PART), *(step for step in decided if 0 <= step < every)})
    for step, until in pairwise([*begins, every]):
        if step in decided:
            set_targets(state, jobs, np.full(runs, decided[step]), step / steps)
        kernel.watch(state, jobs, load.produced, step, until, steps, lag, there, noted, many)
        for run, new in enumerate(many):
            commits[run].append(noted[run, :new].copy())
    latency = np.stack([_latency(arrived, *np.concatenate(one).T) for one in commits])
    lag = np.maximum(lag, 0.0)
    since = np.interp(arrived[1:] - lag, arrived, np.arange(seconds + 1))
    return ReplayedCurves(lag, there, latency, np.where(lag < 0.5, 0.0, np.arange(1, seconds + 1) - since))


def _latency(arrived: Floats, ends: Floats, done: Floats) -> Floats:
    """(T,) seconds from each second to the end of the commit with its last record; NaN without records or commit."""
    first = np.append(ends, np.nan)[np.searchsorted(done, arrived[1:] - 0.5)]
    return np.where(np.diff(arrived) > 0, first - np.arange(len(first)), np.nan)


def normalised_error(measured: Floats, simulated: Floats) -> float:
    """Compute the root mean squared error over the seconds finite in both curves, divided by the measured range.

    NaN where no second is finite in both, or the measured curve is constant.

    Raises:
        ValueError: the shapes differ and do not broadcast.
    """
    known = np.isfinite(measured) & np.isfinite(simulated)
    spread = float(np.ptp(measured[known])) if known.any() else 0.0
    return float(np.sqrt(np.mean((measured - simulated)[known] ** 2)) / spread) if spread > 0 else float("nan")
