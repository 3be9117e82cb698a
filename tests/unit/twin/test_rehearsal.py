"""Where steering begins: what a policy would have needed on the past, and for whom nothing is found."""

import numpy as np
import pytest

from configs.contract import Contract, Planning
from models.forecast.baselines.linear import fit_linear
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.twin.experiment import rehearsal
from models.twin.experiment.foresight import LEVELS
from models.twin.experiment.rehearsal import find_starts, knob_within
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob

STEP_S, SPEED = 1800.0, 200.0
TASK = Task(STEP_S, 12, LEVELS)
TWIN = TwinJob(0.5, 0.04, most=8, least=1, tasks=64, startup_s=(9.0, 10.0, 11.0), cold_s=2.0, noise=0.1)
PLANNING = Planning(lead_s=10, hold_s=6, batch_s=2, overhead_s=0.5, per_record_s=0.04)


def setup(budget=0.05, **planning):
    contract = Contract(
        job="j", latency_target_s=5.0, executors={"min": 1, "max": 8}, error_budget=budget,
        planning=PLANNING.model_copy(update=planning),
    )  # fmt: skip
    return Setup(lead_s=10.0, job=TWIN, as_is=True, speed=SPEED, contract_of_job=contract, every_s=2.0)


def load(days=2):
    """A wave a day with a noise of its own, 15 to 105 records/s."""
    steps = np.arange(days * 48)
    wave = 60 - 45 * np.cos(steps * 2 * np.pi / 48)
    return Series(0.0, STEP_S, np.maximum(wave + 4 * np.random.default_rng(1).standard_normal(len(steps)), 1.0))


def test_a_knob_is_read_off_between_the_two_that_enclose_what_is_allowed():
    ladder, late = np.array([1.4, 1.0, 0.6]), np.array([0.10, 0.04, 0.02])
    assert knob_within(ladder, late, 0.07) == pytest.approx(1.2)
    assert knob_within(ladder, late, 0.2) == 1.4
    assert knob_within(ladder, late, 0.01) is None
    # A stricter knob that was later by chance is taken for as late as the more lenient one.
    assert knob_within(ladder, np.array([0.04, 0.05, 0.0]), 0.02) == pytest.approx(0.8)


def test_a_looser_promise_begins_more_leniently_and_the_same_past_says_the_same():
    loose, tight, again = (find_starts(Naive(TASK), load(), setup(b)) for b in (0.2, 0.02, 0.02))
    assert tight == again and set(tight) <= {"reactive", "forecast", "mpc"} and "mpc" in tight
    assert loose["mpc"].knob < tight["mpc"].knob and loose["mpc"].hours < tight["mpc"].hours
    assert "reactive" not in tight or loose["reactive"].knob > tight["reactive"].knob
    assert 24 <= loose["mpc"].hours <= 24 * 8  # a day, one to eight executors


def test_the_budget_of_a_load_that_rests_is_of_its_seconds_of_production(monkeypatch):
    """Half of 5 % of the seconds of production, which are half of all."""
    allowed = []
    monkeypatch.setattr(rehearsal, "knob_within", lambda ladder, late, share: allowed.append(share))
    day = np.where(np.arange(48) < 24, 60.0, 0.0)
    assert find_starts(Naive(TASK), Series(0.0, STEP_S, np.tile(day, 3)), setup(0.05)) == {}
    assert allowed and allowed == pytest.approx([0.0125] * len(allowed), rel=0.03)


def test_nothing_is_found_where_the_past_tells_nothing():
    fitted = fit_linear(TASK, load(8))
    assert find_starts(fitted, load(), setup()) == {}
    assert find_starts(Naive(TASK), load(1), setup()) == {}  # a third of it is history
    assert find_starts(Naive(TASK), load(), setup(lead_s=0.5)) == {}
    unknown = Series(0.0, STEP_S, np.full(300, np.nan))
    assert find_starts(Naive(TASK), unknown, setup()) == {}
    assert find_starts(Naive(TASK), Series(0.0, STEP_S, 50 * load().values), setup()) == {}  # nobody keeps that
