"""Simulate policies on the same scenario, a run per knob value, seed and trace, and compare cost at equal violation.

A knob is a policy's one tuned parameter; violation is the share of seconds over the latency target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.policies import BY_PEAKS
from models.policy.catalogue import build
from models.policy.core.capacity import Floats, Integers
from models.policy.core.choice import Why
from models.policy.core.paced import Paced
from models.policy.core.policy import Policy
from models.policy.received.nowcast import forecast_offsets
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import stretch_ends
from models.policy.rules.fixed import DAY_S, SLOTS, Timetable, learn_timetable
from models.twin.experiment.contenders import TRUTH, Contender, Sweep
from models.twin.experiment.foresight import LEVELS, correct_at_looks, true_peaks
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.scenario import Scenario
from models.twin.sim.job import stack
from models.twin.sim.run import Foresight, Load, SimOutcome, simulate

RUNS = 384  # most runs in one simulation: more are no faster and take memory
PER_RUN = ("utilisation",)
"""Fields of a policy that may differ between the runs of one simulation: fewer simulations, the same figures."""


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
        shape, why = (len(knobs), seeds), found.why[:looks]
        counts = ((why & int(flag) > 0).sum(axis=0) for flag in (Why.NOT_A_NUMBER, Why.CLAMPED))
        values = (found.executor_s / 3600, found.violation, found.p99_s, found.worst_s, found.changes, *counts)
        return cls(knobs, *(value[runs].reshape(shape) for value in values))

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


def run_sweeps(contender: Contender, sweeps: Sequence[Sweep]) -> list[SweepResults]:
    """Simulate a policy on several scenarios, each with its own hyper-parameters and knob (tuned parameter) values.

    Args:
        contender: the policy.
        sweeps: with the same setup, as many seeds and as many knob values each.

    Returns:
        One result per sweep, in their order; arrays (knobs, seeds): executor-hours, violation (share), latency (s).

    Raises:
        SettingsError: the policy is unknown or cannot be built, or a past from which a timetable is learned is empty.
        KeyError, ValueError: a scenario lacks the forecasts that the policy receives, or `setting.level` of them.
        TwinError: a scenario is shorter than one look (the interval of decisions).
    """
    found: dict[int, SweepResults] = {}
    for chunk in _chunks(contender, sweeps):
        some = [sweeps[i] for i in chunk]
        setup, seeds, each = some[0].scenario.setup, some[0].scenario.seeds, len(some[0].knobs) * some[0].scenario.seeds
        jobs, chance = stack([setup.twin_job] * (each * len(some)), setup.belief), _rows([0] * len(some), some)
        ahead = collect_forecasts(contender, some) if contender.uses_forecast else None
        outcome = simulate(jobs, collect_load(some), _policy(contender, some), setup.looks, chance, ahead)
        for at, (i, sweep) in enumerate(zip(chunk, some, strict=True)):
            runs, looks = slice(at * each, (at + 1) * each), len(sweep.scenario.looks_s)
            found[i] = SweepResults.from_outcome(sweep.knobs, seeds, outcome, runs, looks)
    return [found[i] for i in range(len(sweeps))]


def _chunks(contender: Contender, sweeps: Sequence[Sweep]) -> Iterable[list[int]]:
    """Sweeps of the same fields (but for `PER_RUN`) and calibrator, longest first, at most `RUNS` runs in each."""
    groups: dict[Any, list[int]] = {}
    for i in sorted(range(len(sweeps)), key=lambda i: -sweeps[i].scenario.seconds):
        alike = tuple((name, name in PER_RUN or value) for name, value in sweeps[i].setting.fields)
        groups.setdefault((alike, _by_peaks(contender, sweeps[i])), []).append(i)
    for group in groups.values():
        many = max(1, RUNS // (len(sweeps[group[0]].knobs) * sweeps[group[0]].scenario.seeds))
        yield from (group[at : at + many] for at in range(0, len(group), many))


def _rows(firsts: Iterable[int], sweeps: Sequence[Sweep]) -> Integers:
    """(runs,) rows, one per seed from the first of each sweep on, the same for all its knob values."""
    seeds = np.arange(sweeps[0].scenario.seeds)
    return np.concatenate(
        [np.tile(first + seeds, len(sweep.knobs)) for first, sweep in zip(firsts, sweeps, strict=True)]
    )


def collect_load(sweeps: list[Sweep]) -> Load:
    """Collect the load of some scenarios' runs: of each sweep a row per seed, for every knob value."""
    scenarios = list(dict.fromkeys(sweep.scenario for sweep in sweeps))
    seeds, longest = scenarios[0].seeds, max(one.seconds for one in scenarios)
    arrived = [np.pad(one.arrived, ((0, 0), (0, longest - one.seconds)), mode="edge") for one in scenarios]
    lasts, counts = np.repeat([(one.seconds, one.warm_s) for one in scenarios], seeds, axis=0).T
    row = _rows((scenarios.index(sweep.scenario) * seeds for sweep in sweeps), sweeps)
    return Load(np.concatenate(arrived), row, lasts, counts)


def _policy(contender: Contender, sweeps: list[Sweep]) -> Policy:
    setup, seeds = sweeps[0].scenario.setup, sweeps[0].scenario.seeds
    known = contender.learned
    if contender.policy == "schedule":
        tables = np.stack([_timetable(sweep.scenario) for sweep in sweeps])
        known = Timetable(np.repeat(tables, len(sweeps[0].knobs) * seeds, axis=0), DAY_S / setup.speed)
    knob = np.concatenate([np.repeat(sweep.knobs, seeds) for sweep in sweeps])
    policy: Any = build(contender.policy, setup.contract, known, knob)
    fields: Any = dict(sweeps[0].setting.fields)
    for name in fields.keys() & set(PER_RUN):
        each = [np.full(len(sweep.knobs) * seeds, dict(sweep.setting.fields)[name]) for sweep in sweeps]
        fields[name] = np.concatenate(each)
    if fields and isinstance(policy, Paced):
        inner: Any = policy.policy
        fields = {"policy": replace(inner, **fields)}
    return replace(policy, **fields) if fields else policy


def _timetable(scenario: Scenario) -> Floats:
    """(slots,) rates of the day's slots in the past, the first of which begins with the scenario."""
    past, day_s = scenario.past, DAY_S / scenario.setup.speed
    many = math.ceil(past.step_s / (day_s / SLOTS))  # a long step says something of every slot that it covers
    since = past.start + past.step_s / many * np.arange(len(past) * many, dtype=np.float64) - scenario.begins_s
    return learn_timetable(since % day_s, np.repeat(past.values, many), slots=SLOTS, day_s=day_s).rps


def collect_forecasts(contender: Contender, sweeps: list[Sweep]) -> Foresight:
    """Collect the forecasts that a policy receives on some scenarios, a row per scenario, hyper-parameters and seed.

    Args:
        contender: the policy, which listens to a forecaster or the truth.
        sweeps: with the same setup, at least one; all or none of them with learned peaks.

    Returns:
        `rps` (rows, D, K, Q) records/s at the D decisions of the longest scenario; NaN after shorter ones end.

    Raises:
        KeyError, ValueError: a scenario lacks the forecasts of `contender.forecaster`, or the setting's level of them.
    """
    setup, seeds, level = sweeps[0].scenario.setup, sweeps[0].scenario.seeds, sweeps[0].setting.level
    ends = asked_at = forecast_offsets(*setup.planned_s)
    levels: tuple[float, ...] = LEVELS if level is None else (level,)
    if all(_by_peaks(contender, sweep) for sweep in sweeps):
        ends, levels = stretch_ends(*setup.planned_s), PEAK_LEVELS
    kinds = [(id(sweep.scenario), sweep.setting.memory_steps, sweep.setting.level) for sweep in sweeps]
    first = dict(zip(kinds, sweeps, strict=True))
    looks = max(len(sweep.scenario.looks_s) for sweep in sweeps)
    rps: Any = np.full((len(first) * seeds, looks, len(ends), len(levels)), np.nan, np.float32)
    for at, sweep in enumerate(first.values()):
        rps[at * seeds : (at + 1) * seeds, : len(sweep.scenario.looks_s)] = _received(contender, sweep, asked_at)
    # Sweeps may differ in a single level: the policy takes the only one there is, whatever its value.
    return Foresight(ends, levels, rps, _rows((list(first).index(kind) * seeds for kind in kinds), sweeps))


def _received(contender: Contender, sweep: Sweep, ends: Floats) -> NDArray[np.floating[Any]]:
    scenario, setting = sweep.scenario, sweep.setting
    if contender.forecaster == TRUTH:
        every = np.concatenate([scenario.rate, scenario.after])
        return true_peaks(every, scenario.looks_s, ends)[None, :, :, None]  # the same at every level
    if _by_peaks(contender, sweep):
        return scenario.forecast_peaks[contender.forecaster]
    issued, moments = scenario.issued[contender.forecaster], scenario.begins_s + scenario.looks_s.astype(np.float64)
    memory_s = setting.memory_steps * issued.step_s
    return np.stack(
        [correct_at_looks(issued, moments, now, ends, memory_s, setting.level) for now in scenario.looked_back[0]]
    )


def _by_peaks(contender: Contender, sweep: Sweep) -> bool:
    """Whether the policy receives the peaks whose quantiles the past has kept, instead of the forecaster's own."""
    return contender.policy in BY_PEAKS and contender.forecaster in sweep.scenario.peaks
