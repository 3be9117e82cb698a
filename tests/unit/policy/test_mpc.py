from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract
from models.policy.core.choice import Why
from models.policy.core.policy import decide
from models.policy.core.view import LoadAhead
from models.policy.planners.mpc import Mpc, cheapest_capacity, unserved_records
from tests.fakes.views import a_view, alone

LEVELS = (0.5, 0.9, 0.99)
# At full use an executor carries 200 records/s by batches of 2 s with 0.4 s of overhead: 1 / 0.004 * 0.8.
POLICY = Mpc("mpc", 0.0, 1.0, lead_s=15.0, ahead_s=30.0, catch_up_s=60.0, batch_s=2.0, hold_s=60.0)


def ahead(*quantiles, offset_s=30.0):
    return LoadAhead(np.array([offset_s]), LEVELS, np.array([[quantiles]], float))


def answer(policy=POLICY, **changed):
    view = a_view(tasks=2000, **changed)
    return decide(policy, policy.fresh(view.runs), view)[1]


def cost(x, quantiles, levels, per_rps, price):
    """Executors, and the price of what exceeds them, read off exponential pieces."""
    depth = -np.log1p(-np.asarray(levels))
    fall = np.diff(depth) / np.diff(quantiles)
    at = np.clip(np.searchsorted(quantiles, x, side="right") - 1, 0, len(fall) - 1)
    return per_rps * x + price * np.exp(-(depth[at] + (x - quantiles[at]) * fall[at]))


def test_provides_what_costs_least_by_hand():
    # Tails that fall by e per 100 records/s; an executor carries 200: its price is met where P = 100 / 200 / price.
    levels = tuple(1 - np.exp(-np.array([1.0, 2.0, 3.0])))
    quantiles = np.array([[100.0, 200.0, 300.0]])
    found = cheapest_capacity(quantiles, levels, np.array([1 / 200]), np.array([0.5 * np.exp(4.0)]))
    assert found == pytest.approx([400 * 1.04], rel=0.02)  # a little more, because executors are not sure themselves


@given(st.lists(st.floats(1, 500), min_size=3, max_size=3), st.floats(50, 3000), st.floats(-1, 4), st.floats(1, 40))
def test_nothing_costs_less_than_what_is_provided(steps, first, violation_cost, most):
    quantiles, levels = first + np.cumsum([0.0, *steps[:2]]), (0.5, 0.9, 0.99)
    per_rps, price = 1 / 200, 10**violation_cost * most
    found = cheapest_capacity(quantiles[None], levels, np.array([per_rps]), np.array([price]))[0]
    unsure = quantiles * (1 + 0.012 * (-np.log1p(-np.asarray(levels)) - np.log(2)))
    others = np.linspace(unsure[0], unsure[-1] + 10 * sum(steps) + 3000, 4000)
    mine = cost(np.array([found]), unsure, levels, per_rps, price)[0]
    assert mine <= cost(others, unsure, levels, per_rps, price).min() * (1 + 1e-6)


def test_where_lateness_costs_little_batches_may_grow():
    # 4,000 records/s. Above a price of 10^0.5 of all executors each carries 200; two factors of ten below, 16 % more.
    policy = replace(POLICY, violation_cost=np.array([4.0, 0.5, -1.5]))
    assert policy.busy == pytest.approx([1.0, 1.0, 1.16])
    counts = [answer(replace(POLICY, violation_cost=c), arrival_rps=4000.0).observed[0] for c in policy.violation_cost]
    assert counts[0] == counts[1] > counts[2] == pytest.approx(counts[0] / 1.16, abs=1)


def test_an_unsure_moment_may_be_violated_more_often():
    levels, per_rps, price = (0.5, 0.9, 0.99), np.full(2, 1 / 200), np.full(2, 50.0)
    quantiles = np.array([[1000.0, 1010, 1020], [1000.0, 1500, 2000]])
    found = cheapest_capacity(quantiles, levels, per_rps, price)
    calm, wild = (found - quantiles[:, 0]) / (quantiles[:, 1] - quantiles[:, 0])
    assert calm > 1.3 * wild and found[1] > found[0]


def test_the_knob_may_be_one_per_run():
    view = a_view(2, tasks=2000, ahead=LoadAhead(np.array([30.0]), LEVELS, np.tile([500.0, 900.0, 1500.0], (2, 1, 1))))
    policy = replace(POLICY, violation_cost=np.array([-1.0, 1.5]))
    targets = decide(policy, policy.fresh(2), view)[1].target
    each = [
        decide(replace(POLICY, violation_cost=c), policy.fresh(1), alone(view, i))[1].target[0]
        for i, c in enumerate((-1.0, 1.5))
    ]
    assert targets.tolist() == each and targets[0] < targets[1]


def test_what_is_over_before_an_executor_could_come_raises_nothing_but_is_not_let_go():
    soon = LoadAhead(np.array([15.0, 30.0]), LEVELS, np.array([[[1500.0, 1501, 1502], [300.0, 301, 302]]]))
    assert answer(ahead=soon, executors=4.0).target == [4]
    assert answer(ahead=soon, executors=9.0).target == [8]


def test_a_forecast_never_lowers_below_the_load_of_now():
    choice = answer(arrival_rps=790.0, ahead=ahead(1, 2, 3))
    assert choice.target == [4]


def test_without_a_forecast_it_is_reactive_and_says_so():
    choice = answer(arrival_rps=1300.0)
    assert choice.target == [7] and choice.why[0] & Why.NO_FORECAST
    broken = answer(arrival_rps=1300.0, ahead=ahead(np.nan, np.nan, np.nan))
    assert broken.target == [7] and broken.why[0] & Why.NO_FORECAST


def test_a_raise_by_the_forecast_alone_says_so():
    assert answer(ahead=ahead(500, 900, 1500)).why[0] & Why.FORECAST
    assert not answer(arrival_rps=900.0, ahead=ahead(900, 900, 900)).why[0] & Why.FORECAST


def test_nothing_is_dropped_while_a_backlog_is_worked_off():
    choice = answer(arrival_rps=100.0, lag_records=5000.0)
    assert choice.target == [4] and choice.why[0] & Why.CATCH_UP


def test_what_recent_plans_asked_for_is_not_dropped():
    view = a_view(arrival_rps=700.0, lag_records=0.0)
    memory, choice = decide(POLICY, POLICY.fresh(1), view)
    assert choice.target == [4]
    memory, choice = decide(POLICY, memory, replace(view, now_s=15.0, arrival_rps=np.array([100.0])))
    assert choice.target == [4] and choice.why[0] & Why.DELAYED_DOWN
    _, choice = decide(POLICY, memory, replace(view, now_s=120.0, arrival_rps=np.array([100.0])))
    assert choice.target == [1]


def test_an_entry_beyond_lead_and_hold_is_not_planned_for():
    two = LoadAhead(np.array([30.0, 600.0]), LEVELS, np.array([[[500.0, 600, 700], [3000.0, 3000, 3000]]]))
    without = LoadAhead(two.offsets_s[:1], LEVELS, two.rps[:, :1])
    assert answer(ahead=two).target == answer(ahead=without).target


@given(st.floats(0, 5000), st.floats(0, 50_000), st.lists(st.floats(0, 5000), min_size=3, max_size=3))
def test_the_answer_is_within_bounds_and_never_under_the_observed_need(rate, lag, quantiles):
    choice = answer(arrival_rps=rate, lag_records=lag, ahead=ahead(*sorted(quantiles)))
    assert 1 <= choice.target[0] <= 20
    assert choice.target[0] >= min(choice.observed[0], 20)


def test_takes_the_numbers_of_a_contract():
    contract = Contract(job="j")
    policy = Mpc.of("mpc", contract)
    assert policy.ahead_s == contract.planning.lead_s + contract.planning.hold_s
    # An executor that is needed in four hundredths of cases just pays: 10 ** violation_cost * most * 0.04 == 1.
    assert 10**policy.violation_cost * contract.executors.max * 4 * contract.error_budget == pytest.approx(1)


def test_of_a_forecast_with_one_level_that_is_provided_for():
    assert (
        cheapest_capacity(np.array([[120.0], [np.nan]]), (0.5,), np.full(2, 0.01), np.full(2, 40.0)).tolist()[0] == 120
    )


def test_what_piles_up_until_a_raise_is_of_use_is_worked_off():
    # 800 records/s now and 1,180 in 15 s, of which four executors carry 800: 15 s * 380 / 2 = 2,850 records are left,
    # 47.5 a second for a minute. 1,180 records/s are six executors; with the backlog it takes a seventh.
    coming = LoadAhead(np.array([15.0, 30.0]), LEVELS, np.full((1, 2, 3), 1180.0))
    seen = dict(executors=4.0, target=4.0, arrival_rps=800.0, lag_records=0.0, ahead=coming, most=20.0)
    lenient = replace(POLICY, violation_cost=-3.0)  # provides for the lowest quantile
    lenient = replace(lenient, utilisation=1 / lenient.busy)
    assert answer(lenient, **seen).forecast[0] == 7
    assert answer(replace(lenient, lead_s=5.0), **seen).forecast[0] == 6  # a third of the backlog


@pytest.mark.parametrize(
    ("now", "then", "capacity", "left"),
    [(0, 100, 50, 10 * 12.5), (100, 0, 50, 10 * 12.5), (80, 120, 60, 10 * 40), (10, 20, 30, 0), (70, 70, 50, 200)],
)
def test_a_backlog_is_the_load_above_the_capacity_until_then(now, then, capacity, left):
    line = np.linspace(now, then, 100_001)
    assert unserved_records(*(np.array([float(v)]) for v in (now, then, capacity)), 10.0)[0] == pytest.approx(left)
    assert np.maximum(line - capacity, 0).mean() * 10 == pytest.approx(left, abs=1e-2)


def test_where_few_may_start_at_once_the_next_are_asked_for_when_the_last_should_be_of_use():
    policy = replace(POLICY, step_up=2.0, lead_s=15.0)
    far = {"arrival_rps": 4000.0, "executors": 4.0, "target": 4.0}
    assert answer(policy, **far).target[0] == 6 and answer(POLICY, **far).target[0] == 20
    assert answer(policy, **(far | {"target": 6.0, "starting": 2.0})).target[0] == 6  # these have not come yet
    come = far | {"executors": 6.0, "target": 6.0}  # and the next turn begins after three quarters of a lead time
    assert [answer(policy, **come, since_raise_s=since).target[0] for since in (11.0, 11.5)] == [6, 8]
    assert answer(policy, **(far | {"arrival_rps": 900.0})).target[0] == 5  # no more than the plan


def test_starts_that_slow_each_other_are_made_in_turns():
    policy, far = replace(POLICY, growth=1.0, lead_s=15.0), {"arrival_rps": 4000.0, "executors": 4.0, "target": 4.0}
    assert answer(policy, **far).target[0] == 5 and answer(replace(policy, growth=0.2), **far).target[0] == 20
    assert [answer(policy, **far, since_raise_s=since).target[0] for since in (11.0, 11.5)] == [4, 5]
    last = far | {"arrival_rps": 900.0}  # one is missing: it waits, too
    assert [answer(policy, **last, since_raise_s=since).target[0] for since in (11.0, 11.5)] == [4, 5]
    # Where all at once are soonest of use nothing is waited for: a load that rises needs more at every look.
    rising = far | {"target": 6.0, "starting": 2.0}
    assert answer(policy, **rising).target[0] == 6 and answer(replace(policy, growth=0.2), **rising).target[0] == 20


def test_a_raise_waits_for_the_last_raise_and_not_for_the_lowering_after_it():
    policy = replace(POLICY, growth=1.0, lead_s=15.0)
    lowered = {"arrival_rps": 900.0, "executors": 3.0, "target": 3.0, "since_change_s": 3.0}
    assert answer(policy, **lowered, since_raise_s=60.0).target[0] == 4
    waits = answer(policy, **lowered, since_raise_s=4.0)
    assert waits.target[0] == 3 and waits.why[0] & Why.TURN
    assert not answer(policy, **lowered, since_raise_s=60.0).why[0] & Why.TURN
    enough = lowered | {"arrival_rps": 100.0}
    assert not answer(policy, **enough, since_raise_s=4.0).why[0] & Why.TURN


def test_a_need_that_is_turns_away_is_begun_in_time():
    # 850 records/s need five executors before 30 s from now: in turns of 7.5 s the third plan, to 30 s, sees it, three
    # are missing, and the first of them has to start now. With one more there, or all at once, there is time.
    policy = replace(POLICY, lead_s=10.0, ahead_s=15.0)
    coming = LoadAhead(np.array([15.0, 20.0, 22.5, 30.0]), LEVELS, np.array([[[300.0] * 3] * 3 + [[850.0] * 3]]))
    seen = {"executors": 2.0, "target": 2.0, "arrival_rps": 200.0, "ahead": coming}
    in_turns = replace(policy, growth=1.0)
    assert answer(in_turns, **seen).target[0] == 3 and answer(in_turns, **seen).forecast[0] == 3
    assert answer(policy, **seen).target[0] == 2
    assert answer(in_turns, **(seen | {"executors": 3.0, "target": 3.0})).target[0] == 3  # nor is it dropped
    assert answer(replace(policy, step_up=2.0), **seen).target[0] == 2  # two in a turn: there is time
    one_step = replace(coming, offsets_s=coming.offsets_s[:1], rps=coming.rps[:, :1])
    assert answer(in_turns, **(seen | {"ahead": one_step})).target[0] == 2


def test_a_step_as_large_as_the_bound_is_none():
    chance = np.random.default_rng(0)
    executors, target, rate = chance.integers(1, 21, 200), chance.integers(1, 21, 200), chance.uniform(0, 5000, 200)
    more = {"starting": np.maximum(target - executors, 0), "leaving": np.maximum(executors - target, 0)}
    seen = {"executors": executors, "target": target, "arrival_rps": rate, "since_raise_s": 5.0, "runs": 200, **more}
    assert (answer(replace(POLICY, step_up=20.0), **seen).target == answer(POLICY, **seen).target).all()


def test_runs_may_have_lead_times_of_their_own():
    each = {"lead_s": np.array([15.0, 15.0, 60.0]), "growth": np.array([0.0, 1.0, 0.7])}
    together = replace(POLICY, **each, ahead_s=each["lead_s"] + 15.0)
    rps = np.array([[[900.0, 950, 1000], [1200.0, 1300, 1400], [2000.0, 2100, 2200]]] * 3)
    seen = {"executors": 4.0, "target": 4.0, "arrival_rps": 700.0, "since_raise_s": 20.0, "lag_records": 3000.0}
    coming = LoadAhead(np.array([15.0, 30.0, 75.0]), LEVELS, rps)
    found = answer(together, **seen, runs=3, ahead=coming)
    for run, lead_s in enumerate(each["lead_s"]):
        mine = replace(POLICY, lead_s=float(lead_s), ahead_s=float(lead_s) + 15.0, growth=float(each["growth"][run]))
        one = answer(mine, **seen, ahead=replace(coming, rps=rps[:1]))
        assert (one.target[0], one.forecast[0]) == (found.target[run], found.forecast[run])
    assert found.target.tolist() == [8.0, 5.0, 4.0]
    own = replace(coming, offsets_s=np.array([[15.0, 30, 75], [1, 2, 3], [60, 75, 80]]))
    assert own.peak_rps(np.array([30.0, 30, 75]), np.array([15.0, 15, 60]))[:, 0].tolist() == [1200, 2000, 1200]
    assert own.peak_rps_at(0.5, np.array([15.0, 2.5, 10.0])).tolist() == [900, 2000, 900]


def test_a_contract_says_how_many_may_start_at_once():
    def built(**planning):
        return Mpc.of("mpc", Contract(job="j", executors={"min": 1, "max": 6}, planning={"lead_s": 9, **planning}))

    assert (built().step_up, built().growth) == (np.inf, 0.0)
    assert (built(max_step_up=1).step_up, built(start_growth=0.8).growth) == (1, 0.8)
