"""A steered policy in the twin that learns its lead time from its own raises."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.policy.received.nowcast import correct_by_rate, forecast_offsets
from models.policy.received.outlook import MEMORY_STEPS
from models.twin.experiment.foresight import issue_forecasts
from models.twin.experiment.scenario import build_scenario
from models.twin.experiment.setup import Setup
from models.twin.promise.daily import DailyForecasts
from models.twin.promise.learning import LeadChange, Promises, run_learning

STEP_S = 300.0


@pytest.fixture(scope="module")
def scenario():
    """Two hours after a day and a half, restless enough for a raise every few minutes."""
    steps = np.arange(36 * 12 + 24)
    chance = np.random.default_rng(1)
    values = 1000 - 500 * np.cos(2 * np.pi * steps / 12) + 150 * chance.standard_normal(len(steps))
    series, setup = Series(0.0, STEP_S, np.maximum(values, 50.0)), Setup(lead_s=30.0)
    said = {"blend": issue_forecasts("blend", series, 144)}
    return build_scenario("made", series, range(36 * 12, len(steps)), setup, range(1), said)


def promises(scenario, *leads_s):
    contract = scenario.setup.contract.model_copy(update={"error_budget": 0.02})
    return Promises(scenario, [contract.planned_for(lead_s) for lead_s in leads_s])


@pytest.fixture(scope="module")
def learned(scenario):
    """What is learned where the contract states such lead times; computed once of each."""
    return cache(lambda *leads_s: run_learning([promises(scenario, *leads_s)])[0])


@pytest.mark.study
def test_whatever_the_contract_states_the_lead_time_is_learned(scenario, learned):
    found = learned(10.0, 30.0, 90.0)
    for run in range(3):
        mine = [one for one in found.raises if one.run == run]
        took = np.array([one.seconds for one in mine if one.executors == 1 and not one.censored])
        assert len(mine) > 10 and all(a.told_s <= b.told_s for a, b in pairwise(mine))
        assert took.min() >= 0.85 * 30 and took.max() <= 1.15 * 30 + 15  # start-ups, and the batches after them
        assert mine[-1].median_s == pytest.approx(np.median(took), rel=0.2)
        assert mine[-1].planned_s == pytest.approx(np.quantile(took, 0.9), rel=0.3)
    assert found.late_s.shape == found.outcome.targets.shape
    assert (np.diff(found.late_s[scenario.warm_s // scenario.setup.looks.every_s + 1 :], axis=0) >= 0).all()


@pytest.mark.study
def test_runs_side_by_side_are_as_each_alone(learned):
    both, alone = learned(10.0, 30.0, 90.0), learned(90.0)
    assert np.array_equal(both.outcome.targets[:, 2], alone.outcome.targets[:, 0])


@pytest.mark.study
def test_loads_side_by_side_are_as_each_alone_though_one_ends_sooner(scenario, learned):
    shorter = replace(
        scenario, name="shorter", rate=scenario.rate[:-4000] / 2, arrived=np.floor(scenario.arrived[:, :-4000] / 2)
    )
    together = run_learning([promises(shorter, 20.0), promises(scenario, 90.0)])
    alone = [run_learning([promises(shorter, 20.0)])[0], learned(90.0)]
    for one, other in zip(together, alone, strict=True):
        assert one.raises == other.raises
        assert np.array_equal(one.late_s, other.late_s)
        for mine, its in zip(one.outcome, other.outcome, strict=True):
            assert np.array_equal(mine, its)


@pytest.mark.study
def test_a_change_of_the_cluster_is_learned_after_a_few_raises(scenario):
    at_s = scenario.warm_s + 3600
    (found,) = run_learning([promises(scenario, 30.0)], LeadChange(at_s, (80.0, 100.0)))
    before = [one for one in found.raises if one.decided_s < at_s]
    after = [one for one in found.raises if one.decided_s >= at_s]
    assert max(one.seconds for one in before if not one.censored) < 60 and before[-1].planned_s < 60
    assert min(one.seconds for one in after if one.executors == 1 and not one.censored) >= 80
    assert 85 <= after[min(12, len(after) - 1)].median_s <= 125


def test_forecasts_are_those_of_the_trained_lead_or_else_the_forecasters_own(scenario):
    planning, draws, every = scenario.setup.contract.planning, np.zeros(2, np.int64), scenario.setup.looks.every_s
    daily = DailyForecasts(scenario, draws, planning)
    daily.follow(0, [30.0, 100.0])
    (both,) = daily.groups
    assert both.runs.tolist() == [0, 1] and daily.at(both, 0).rps.shape == (2, 2, 10)
    assert both.offsets_s[:, 0] == pytest.approx([30.0, 100.0], rel=0.05)  # trained for what each believes
    daily.follow(1, [40.0, 100.0])
    assert daily.groups[0] is both  # near enough
    daily.follow(2, [40.0, 50.0])
    peaked, own = daily.groups
    assert (peaked.runs.tolist(), own.runs.tolist()) == ([0], [1]) and own.levels == scenario.issued["blend"].levels
    ends, now = forecast_offsets(50.0, planning.hold_s), scenario.looks_s[2:3]
    curves = scenario.issued["blend"].newest_at(scenario.begins_s + now.astype(float))
    rate = scenario.looked_back[0][0, 2:3]
    wanted = correct_by_rate(curves, ends, rate, MEMORY_STEPS * STEP_S)
    assert own.offsets_s.tolist() == [ends.tolist()]
    assert daily.at(own, 2).rps == pytest.approx(wanted, rel=1e-6)
    assert every * len(scenario.looks_s) >= scenario.seconds


def test_peaks_for_the_planned_lead_are_those_that_the_scenario_has(scenario):
    known = scenario.peaks["blend"]
    for mine, theirs in zip(scenario.learn_peaks("blend", 30.0), known, strict=True):
        assert mine.scores.tolist() == theirs.scores.tolist()
