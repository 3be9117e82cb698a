"""What the twin would have done with a recorded load and the recorded decisions, and how far that is from what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.sim import state as s
from models.twin.sim.actuate import retarget
from models.twin.sim.job import TwinError, TwinJob, stack
from models.twin.sim.kernel import advance, close
from models.twin.sim.state import SimState, begin


@dataclass(frozen=True, eq=False)
class ReplayedCurves:
    """Second by second; the first axis of a twin's are runs that differ in chance alone.

    Attributes:
        lag: (..., T) records not committed at the end of the second.
        executors: (..., T) that run at its end.
        latency_s: (..., T) of the slowest record produced in the second; NaN where none was, or none was committed.
        waiting_s: (..., T) age of the oldest record not committed at its end.
    """

    lag: Floats
    executors: Floats
    latency_s: Floats
    waiting_s: Floats


def replayed(
    job: TwinJob, arrived: Floats, at_s: Floats, targets: Sequence[int] | Integers, executors: int, seeds: Integers,
    step_s: float = 0.1, batches: int = 0,
) -> ReplayedCurves:  # fmt: skip
    """Drive the twin by recorded arrivals and targets.

    Args:
        job: the twin's.
        arrived: (T + 1,) records produced before each second.
        at_s: (D,) rising seconds at which the target changed, whole multiples of `step_s` as near as may be.
        targets: (D,) what to.
        executors: at second 0.
        seeds: (runs,) of chance.
        step_s: how finely decisions and commits are placed in time.
        batches: with records that the query had done before second 0.

    Raises:
        TwinError: arrivals that fall, or targets beyond the job's bounds.
    """
    asked = np.asarray(targets, np.int64)
    if (np.diff(arrived) < 0).any() or not np.isfinite(arrived).all():
        raise TwinError("arrived: records before each second must be finite and never fall")
    if len(asked) and not (job.least <= asked.min() and asked.max() <= job.most):
        raise TwinError(f"targets {asked.min()} to {asked.max()}: the job has {job.least} to {job.most} executors")
    jobs, runs, seconds = stack([job] * len(seeds)), len(seeds), len(arrived) - 1
    state = begin(jobs, np.full(runs, float(executors)), seeds, batches)
    produced, row = np.ascontiguousarray(arrived, float)[None], np.zeros(runs, np.int64)
    steps, decided = round(1 / step_s), dict(zip(np.rint(at_s / step_s).astype(int).tolist(), asked, strict=True))
    watch = _Watch(runs, seconds)
    for step in range(seconds * steps):
        now, until = step / steps, (step + 1) / steps
        if step in decided:
            told = np.full(runs, float(decided[step]))
            retarget(state.x, state.ready_at, state.chance, jobs.startup_s, jobs.restart_s, told, now)
        ends, done = state.x[:, s.BATCH_END].copy(), state.x[:, s.DONE].copy()
        advance(
            state.x,
            state.ready_at,
            state.latencies,
            state.chance,
            jobs.facts,
            jobs.speeds,
            jobs.believed,
            produced,
            row,
            now,
            until,
        )
        watch.look(state, ends, done, until, arrived)
    close(state.x, state.latencies, jobs.facts, produced, row, seconds)
    return watch.curves(arrived)


class _Watch:
    """Writes down what the runs do."""

    def __init__(self, runs: int, seconds: int) -> None:
        self.lag, self.executors = np.zeros((runs, seconds)), np.zeros((runs, seconds))
        self.commits: list[list[tuple[float, float]]] = [[] for _ in range(runs)]

    def look(self, state: SimState, ends: Floats, done: Floats, until: float, arrived: Floats) -> None:
        x, second = state.x, min(int(until - 1e-6), self.lag.shape[1] - 1)
        for run in np.flatnonzero(x[:, s.DONE] > done):
            end = min(float(ends[run]), until)
            self.commits[run].append((end, float(x[run, s.DONE])))
        self.lag[:, second] = arrived[second + 1] - x[:, s.DONE]
        self.executors[:, second] = x[:, s.EXECUTORS]

    def curves(self, arrived: Floats) -> ReplayedCurves:
        runs, seconds = self.lag.shape
        latency = np.full((runs, seconds), np.nan)
        some = np.diff(arrived) > 0
        for run, commits in enumerate(self.commits):
            if commits:
                ends, done = np.array(commits).T
                first = np.searchsorted(done, arrived[1:] - 0.5)
                known = some & (first < len(ends))
                latency[run, known] = ends[first[known]] - np.flatnonzero(known)
        lag, ends = np.maximum(self.lag, 0.0), np.arange(1, seconds + 1)
        since = np.interp(arrived[1:] - lag, arrived, np.arange(seconds + 1))
        return ReplayedCurves(lag, self.executors, latency, np.where(lag < 0.5, 0.0, ends - since))


def normalised_error(measured: Floats, simulated: Floats) -> float:
    """Root of the mean squared difference over the seconds known in both, divided by the measured range.

    NaN where nothing is known in both, or the measured curve is constant.
    """
    known = np.isfinite(measured) & np.isfinite(simulated)
    if not known.any():
        return float("nan")
    spread = float(np.ptp(measured[known]))
    return float(np.sqrt(np.mean((measured - simulated)[known] ** 2)) / spread) if spread > 0 else float("nan")
