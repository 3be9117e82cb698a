"""Simulate policies on scenarios, a run per policy, knob value, seed and trace, and what these runs came to.

A knob is a policy's one tuned parameter; violation is the share of seconds over the latency target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.choice import Why
from models.twin.experiment.contenders import Trial
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.lanes import build_lane, collect_load, group_by_lane, seed_rows
from models.twin.sim.job import stack
from models.twin.sim.run import SimOutcome, simulate
from models.twin.sim.side_by_side import SideBySide

RUNS = 384  # most runs in one simulation: more are no faster and take memory


class SweepResults(NamedTuple):
    """Results of one policy on one scenario, arrays of shape (knobs, seeds) but for `knobs`.

    Attributes:
        knobs: (N,) values of the tuned parameter.
        hours: executor-hours paid.
        violation: share of the seconds over the latency target.
        p99_s, worst_s: latency in seconds: 99 % quantile, and maximum.
        actions: changes of the target.
        none, clamped: decisions in which the policy's answer was no number, or out of bounds.
    """

    knobs: Floats
    hours: Floats
    violation: Floats
    p99_s: Floats
    worst_s: Floats
    actions: Floats
    none: Integers
    clamped: Integers

    @classmethod
    def from_outcome(cls, knobs: Floats, seeds: int, found: SimOutcome, runs: slice, looks: int) -> SweepResults:
        """Take one sweep's results from a simulation: `runs`, by (N,) knob (tuned parameter) values and then seed.

        Executor-seconds become hours; answers NaN or out of bounds are counted in the first `looks` decisions.

        Raises:
            ValueError: there are not N * seeds runs.
        """
        shape, why = (len(knobs), seeds), found.why[:looks, runs]
        told = (found.executor_s / 3600, found.violation, found.p99_s, found.worst_s, found.changes)
        counts = ((why & int(flag) > 0).sum(axis=0) for flag in (Why.NOT_A_NUMBER, Why.CLAMPED))
        return cls(knobs, *(value.reshape(shape) for value in (*(one[runs] for one in told), *counts)))

    def plus(self, other: SweepResults) -> SweepResults:
        """Append the results of further knob values."""
        return SweepResults(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    @property
    def means(self) -> tuple[Floats, Floats]:
        """(knobs,) each: share of the seconds over the target, and executor-hours, mean over the seeds."""
        return self.violation.mean(axis=1), self.hours.mean(axis=1)

    def hours_at(self, allowed: float) -> float:
        """Interpolate mean executor-hours at an allowed violation; NaN where every knob value violates more."""
        return least_cost_at(*self.means, allowed)


def run_trials(
    trials: Sequence[Trial], report_share: Callable[[float], None] = lambda share: None
) -> list[SweepResults]:
    """Simulate policies on scenarios, each with its own hyper-parameters and knob (tuned parameter) values.

    As many as possible share a simulation; a run comes to the same, bit for bit, whatever others are beside it.

    Args:
        trials: with the same setup, and as many seeds each.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        One result per trial, in their order; arrays (knobs, seeds): executor-hours, violation (share), latency (s).

    Raises:
        SettingsError: a policy is unknown or cannot be built, or a past from which a timetable is learned is empty.
        KeyError, ValueError: a scenario lacks the forecasts that a policy receives, or `setting.level` of them.
        TwinError: a scenario is shorter than one look (the interval of decisions).
    """
    found: dict[int, SweepResults] = {}
    chunks = list(_chunks(trials))
    for done, lanes in enumerate(chunks):
        chunk = [i for lane in lanes for i in lane]
        some, sweeps = [trials[i] for i in chunk], [trials[i].sweep for i in chunk]
        setup, seeds = sweeps[0].scenario.setup, sweeps[0].scenario.seeds
        jobs, chance = stack([setup.twin_job] * sum(map(_runs, some)), setup.belief), seed_rows([0] * len(some), sweeps)
        policy = SideBySide(tuple(build_lane([trials[i] for i in lane]) for lane in lanes), setup.looks.every_s)
        report = partial(_report, report_share, done, len(chunks))
        outcome, begin = simulate(jobs, collect_load(sweeps), policy, setup.looks, chance, report_share=report), 0
        for i, trial in zip(chunk, some, strict=True):
            runs, looks = slice(begin, begin + _runs(trial)), len(trial.sweep.scenario.looks_s)
            found[i] = SweepResults.from_outcome(trial.sweep.knobs, seeds, outcome, runs, looks)
            begin = runs.stop
    return [found[i] for i in range(len(trials))]


def _report(report_share: Callable[[float], None], done: int, parts: int, share: float) -> None:
    report_share((done + share) / parts)


def _chunks(trials: Sequence[Trial]) -> Iterable[list[list[int]]]:
    """Trials that share a simulation, by lane, the longest of each first; at most `RUNS` runs in each."""
    chunk: list[list[int]] = []
    room = RUNS
    for lane in group_by_lane(trials):
        begun = False
        for i in sorted(lane, key=lambda i: -trials[i].sweep.scenario.seconds):
            if chunk and _runs(trials[i]) > room:
                yield chunk
                chunk, room, begun = [], RUNS, False
            if not begun:
                chunk.append([])
            chunk[-1].append(i)
            room, begun = room - _runs(trials[i]), True
    if chunk:
        yield chunk


def _runs(trial: Trial) -> int:
    return len(trial.sweep.knobs) * trial.sweep.scenario.seeds
