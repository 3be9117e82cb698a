"""The clairvoyant optimum and the bound of a scenario, at the violations at which policies are compared."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Floats
from models.twin.experiment.evaluation import Sheet
from models.twin.experiment.scenario import Scenario
from models.twin.oracle.bound import bound
from models.twin.oracle.optimum import clairvoyant
from models.twin.sim.job import stack
from models.twin.sim.run import Load, simulate

BUDGETS = (0.001, 0.003, 0.01, 0.05)
"""Violations at which they are computed; between them the frontier is interpolated."""


def optimum(scenario: Scenario, seeds: int, budgets: tuple[float, ...] = BUDGETS) -> Sheet:
    """Plans that know the load of the first seeds, tried in the twin; their knob is the violation they may have.

    The plans are made for all seconds; like everybody's, only what counts is counted, against their budget, too.
    """
    each = np.repeat(np.array(budgets), seeds)
    row, counts = np.tile(np.arange(seeds), len(budgets)), np.full(seeds, scenario.warm_s)
    load = Load(scenario.arrived[:seeds], row, counts=counts)
    jobs, looks = stack([scenario.setup.the_job] * len(each)), scenario.setup.looks
    plans = clairvoyant(jobs, load, looks, load.row, each)
    outcome = simulate(jobs, load, plans, looks, load.row)
    shape = (len(budgets), seeds)
    values = (outcome.executor_s / 3600, outcome.violation, outcome.p99_s, outcome.worst_s, outcome.changes)
    hours, violation, p99_s, worst_s, actions = (value.reshape(shape) for value in values)
    none = np.zeros(shape, np.int64)
    return Sheet(
        np.array(budgets), hours, violation, p99_s, worst_s, actions, none, none,
        outcome.targets.reshape(len(outcome.targets), *shape),
    )  # fmt: skip


def least_hours(scenario: Scenario, seeds: int, budgets: tuple[float, ...]) -> Floats:
    """(budgets,) executor-hours below which no policy can go at these violations, mean over the first seeds."""
    each = np.repeat(np.array(budgets), seeds)
    arrived = scenario.arrived[:seeds, scenario.warm_s :]
    load = Load(arrived - arrived[:, :1], np.tile(np.arange(seeds), len(budgets)))
    jobs = stack([scenario.setup.the_job] * len(each))
    found: Floats = bound(jobs, load, scenario.setup.looks, each).reshape(len(budgets), seeds).mean(axis=1) / 3600
    return found
