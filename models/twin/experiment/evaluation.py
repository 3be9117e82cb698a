"""Policies on the same scenario: every knob value, seed and trace is a run, and many runs share one simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from models.policy.catalogue import build
from models.policy.core.capacity import Floats, Integers
from models.policy.core.paced import Paced
from models.policy.core.view import Policy, Why
from models.policy.rules.fixed import DAY_S, SLOTS, Timetable, learned
from models.twin.experiment.lanes import Contender, Lane
from models.twin.experiment.received import by_peaks, foresight
from models.twin.experiment.scenario import Scenario
from models.twin.sim.job import stack
from models.twin.sim.run import Load, SimOutcome, simulate

RUNS = 384
"""At most in one simulation: more gains no speed and takes memory."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """What became of a lane: arrays of (knobs, seeds).

    Attributes:
        knobs: (N,) values.
        hours: executor-hours paid.
        violation: share of the seconds over the target.
        p99_s, worst_s: latency.
        actions: changes of the target.
        none, clamped: decisions in which the policy gave no number, or one out of bounds.
        targets: (D, knobs, seeds) executors asked for, where they were to be kept.
    """

    knobs: Floats
    hours: Floats
    violation: Floats
    p99_s: Floats
    worst_s: Floats
    actions: Floats
    none: Integers
    clamped: Integers
    targets: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def plus(self, other: Sheet) -> Sheet:
        """With further knob values."""
        names = (one.name for one in fields(self))
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)], axis=int(name == "targets"))
            for name in names
        }
        return Sheet(**parts)


def compete(contender: Contender, lanes: Sequence[Lane], keep: bool = False) -> list[Sheet]:
    """One sheet per lane. The lanes have the same setup and as many knob values.

    Raises:
        SettingsError: the policy cannot be built.
    """
    found: dict[int, Sheet] = {}
    for chunk in _chunks(contender, lanes):
        simulated = _simulated(contender, [lanes[i] for i in chunk])
        found |= {i: _sheet(lanes[i], part, keep) for i, part in zip(chunk, simulated, strict=True)}
    return [found[i] for i in range(len(lanes))]


def _chunks(contender: Contender, lanes: Sequence[Lane]) -> Iterable[list[int]]:
    """Lanes of the same fields and calibrator, longest first, in simulations of at most `RUNS` runs."""
    groups: dict[Any, list[int]] = {}
    for i in sorted(range(len(lanes)), key=lambda i: -lanes[i].scenario.seconds):
        groups.setdefault((lanes[i].setting.fields, by_peaks(contender, lanes[i])), []).append(i)
    for group in groups.values():
        many = max(1, RUNS // (len(lanes[group[0]].knobs) * lanes[group[0]].scenario.seeds))
        yield from (group[at : at + many] for at in range(0, len(group), many))


def _simulated(contender: Contender, lanes: list[Lane]) -> list[tuple[SimOutcome, slice]]:
    """The outcome, and where in it each lane's runs are: by knob, then seed."""
    setup, seeds, knobs = lanes[0].scenario.setup, lanes[0].scenario.seeds, len(lanes[0].knobs)
    each = knobs * seeds
    load = _load(lanes)
    policy = _policy(contender, lanes)
    received = foresight(contender, lanes) if contender.listens else None
    jobs = stack([setup.the_job] * (each * len(lanes)), setup.belief)
    chance = np.tile(np.arange(seeds), knobs * len(lanes))
    outcome = simulate(jobs, load, policy, setup.looks, chance, received)
    return [(outcome, slice(at * each, (at + 1) * each)) for at in range(len(lanes))]


def _load(lanes: list[Lane]) -> Load:
    """What arrives, a row per scenario and seed."""
    scenarios = list(dict.fromkeys(lane.scenario for lane in lanes))
    seeds, longest = scenarios[0].seeds, max(scenario.seconds for scenario in scenarios)
    arrived = np.empty((len(scenarios) * seeds, longest + 1))
    for at, scenario in enumerate(scenarios):
        rows = arrived[at * seeds : (at + 1) * seeds]
        rows[:, : scenario.seconds + 1] = scenario.arrived
        rows[:, scenario.seconds + 1 :] = scenario.arrived[:, -1:]
    row = np.concatenate(
        [np.tile(scenarios.index(lane.scenario) * seeds + np.arange(seeds), len(lane.knobs)) for lane in lanes]
    )
    lasts, counts = (
        np.repeat(seconds, seeds) for seconds in zip(*((g.seconds, g.warm_s) for g in scenarios), strict=True)
    )
    return Load(arrived, row, lasts, counts)


def _policy(contender: Contender, lanes: list[Lane]) -> Policy:
    seeds = lanes[0].scenario.seeds
    knob = np.concatenate([np.repeat(lane.knobs, seeds) for lane in lanes])
    taught = contender.learned
    if contender.policy == "schedule":
        tables = np.stack([_timetable(lane.scenario) for lane in lanes])
        day_s = DAY_S / lanes[0].scenario.setup.speed
        taught = Timetable(np.repeat(tables, len(lanes[0].knobs) * seeds, axis=0), day_s)
    policy = build(contender.policy, lanes[0].scenario.setup.contract, taught, knob)
    turn: dict[str, Any] = dict(lanes[0].setting.fields)
    if not turn:
        return policy
    if isinstance(policy, Paced):
        return replace(policy, policy=replace(policy.policy, **turn))  # type: ignore[type-var]
    turned: Policy = replace(policy, **turn)  # type: ignore[type-var]
    return turned


def _timetable(scenario: Scenario) -> Floats:
    """(slots,) rates of the day's slots in the past, the first of which begins with the scenario."""
    past, day_s = scenario.past, DAY_S / scenario.setup.speed
    many = math.ceil(past.step_s / (day_s / SLOTS))  # a long step says something of every slot that it covers
    since = past.start + past.step_s / many * np.arange(len(past) * many, dtype=np.float64) - scenario.begins_s
    return learned(since % day_s, np.repeat(past.values, many), slots=SLOTS, day_s=day_s).rps


def _sheet(lane: Lane, simulated: tuple[SimOutcome, slice], keep: bool) -> Sheet:
    outcome, runs = simulated
    shape, looks = (len(lane.knobs), lane.scenario.seeds), len(lane.scenario.looks_s)
    why = outcome.why[:looks, runs]
    none, clamped = ((why & int(flag) > 0).sum(axis=0).reshape(shape) for flag in (Why.NOT_A_NUMBER, Why.CLAMPED))
    targets = outcome.targets[:looks, runs].reshape(looks, *shape) if keep else np.zeros((0, 0, 0))
    values = (outcome.executor_s / 3600, outcome.violation, outcome.p99_s, outcome.worst_s, outcome.changes)
    hours, violation, p99_s, worst_s, actions = (value[runs].reshape(shape) for value in values)
    return Sheet(lane.knobs, hours, violation, p99_s, worst_s, actions, none, clamped, targets)
