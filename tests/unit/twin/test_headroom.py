"""Actions by part of a load: the planner's own is the planner, the best by hand, and what a state tells is learned."""

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.twin.experiment.benchmark import forecast_trace
from models.twin.experiment.contenders import Sweep, Trial, make_contender
from models.twin.experiment.evaluation import run_trials
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.headroom.observed import STATE, choose_observed, columns_without, learn_outcomes, observed_states
from models.twin.headroom.parts import PRICES, Actions, PartOutcomes, best_by_part, simulate_parts

PARTS, PART_S = 6, 1440.0


@pytest.fixture(scope="module")
def scenario():
    """Almost two and a half hours of a load with a daily wave, in `PARTS`; executors take three minutes."""
    steps = np.arange(4 * 96)
    values = 1000 - 700 * np.cos(2 * np.pi * steps / 96) + 60 * np.random.default_rng(1).standard_normal(len(steps))
    series, setup = Series(0.0, 900.0, np.maximum(values, 0.0)), Setup(lead_s=180.0, test_days=0.1)
    _, test = split_trace("made", series, setup)
    return build_scenario("made", series, test, setup, range(1), forecast_trace("made", series, setup, ("blend",)))


def as_planner(prices):
    """Actions that differ from the planner's own settings in their price alone."""
    same = np.ones(len(prices))
    return Actions(np.array(prices), same, 300.0 * same, 0.0 * same)


def test_the_planners_own_actions_are_the_planner(scenario):
    prices, contender = [0.0, 1.7], make_contender("mpc")
    (swept,) = run_trials([Trial(contender, Sweep(scenario, contender.setting, np.array(prices)))])
    (parts,) = simulate_parts([scenario], as_planner(prices), [np.tile([0, 1], (PARTS, 1))], PART_S)
    counted_s = scenario.seconds - scenario.warm_s
    np.testing.assert_allclose(parts.paid.sum(axis=0), 3600 * swept.hours[:, 0], rtol=1e-9)
    np.testing.assert_allclose(parts.late.sum(axis=0) / counted_s, swept.violation[:, 0], atol=2 / counted_s)


def test_more_executors_are_added_once_and_kept(scenario):
    actions = as_planner([1.0, 1.0])._replace(more=np.array([0.0, 2.0]))
    (parts,) = simulate_parts([scenario], actions, [np.tile([0, 1], (PARTS, 1))], PART_S)
    more = (parts.paid[:, 1] - parts.paid[:, 0]).sum() / (PARTS * PART_S)
    assert 1.5 < more < 2.5


def test_the_cheapest_of_every_part_by_hand():
    late = np.array([[0.0, 9.0, 0.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    paid = np.array([[100.0, 10.0, 900.0], [100.0, 90.0, 80.0], [100.0, 200.0, 900.0]])
    parts = PartOutcomes(late, paid, np.zeros((0, 6)), np.zeros((0, 4)))
    alone = best_by_part(parts, np.arange(3), 1)
    # At 30 a late second the first part pays 100, 280 or 900, the last 250, 200 or 900.
    assert alone.shape == (3, len(PRICES)) and alone[:, 0].tolist() == [0, 2, 1]
    both = best_by_part(parts, np.array([0, 1]), 2)  # of the first two: 200 against 100 + 270
    assert both[:, 0].tolist() == [0, 0, 1]


def test_what_is_observed_has_a_column_for_each_name(scenario):
    (parts,) = simulate_parts([scenario], as_planner([1.0]), [np.zeros((PARTS, 1), int)], PART_S)
    seen = observed_states(parts, scenario, PART_S)
    names = [name for columns in STATE.values() for name in columns]
    assert seen.shape == (PARTS, len(names)) and np.isfinite(seen).all()
    assert (seen[:, names.index("believed")] >= 0).all()  # a slot is guessed at half of what it does
    assert set(columns_without("ages")) == set(range(len(names))) - {names.index(name) for name in STATE["ages"]}


def outcomes(chance, many):
    """States of which the first column says whether the third action saves 50; each of another noise."""
    state = chance.standard_normal((many, 2))
    paid = np.column_stack([np.full(many, 100.0), np.full(many, 99.0), 100 - 50 * np.sign(state[:, 0])])
    late = np.tile([1.0, 0.5, 1.0], (many, 1))
    return state, PartOutcomes(late, paid + chance.standard_normal(paid.shape), np.zeros((0, 6)), np.zeros((0, 4)))


def test_it_learns_which_state_an_action_pays_in_and_else_keeps_its_own():
    chance = np.random.default_rng(1)
    state, parts = outcomes(chance, 400)
    again = [learn_outcomes([state], [parts], np.arange(2), np.array([0.0, 1.0]), 5) for _ in range(2)]
    new = np.array([[1.5, 0.0], [-1.5, 0.0]])
    chosen = [choose_observed(one, new, np.arange(2), [np.array([0, 2]), np.array([1, 2])]) for one in again]
    assert chosen[0].tolist() == [[2, 2], [0, 1]]
    np.testing.assert_array_equal(*chosen)
