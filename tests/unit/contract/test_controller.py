"""A whole interval of control, and a loop of them around a queue."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.controller import close_interval, operator_seed
from models.contract.declared import TermsError, build, plain
from models.contract.relief import Relief
from models.contract.service_rate import ServiceRate
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import ControllerState, Controls, begin
from models.contract.terms import compile_terms
from tests.fakes.shared_job import EAGER, PATH, declared, queue_signals, run_queue, shared_plan

LIVE_BOX = {"replay_rps": {"min": 0, "max": 1000}, "live_rps": {"min": 100, "max": 1100}}


def shared_terms(**changes):
    """A contract whose only price is that of goodput, so that the limits decide."""
    return compile_terms(declared(**{"weights": EAGER, **changes}))


def replay_rates(closed):
    return [one.controls.replay_rps for one in closed]


def test_a_closed_loop_settles_where_the_paper_says():
    closed = run_queue(shared_terms(), [600] * 300 + [800] * 300 + [500] * 300)
    rates = replay_rates(closed)
    for end, rate in ((300, 144.2), (600, 0.0), (900, 244.2)):
        assert rates[end - 1] == pytest.approx(rate, abs=0.1)
        assert max(rates[end - 100 : end]) - min(rates[end - 100 : end]) < 2
    seen = [one.line["y"]["latency_ms"][PATH] for one in closed]
    assert max(seen[:300] + seen[601:]) <= 20 * (1 + 1e-9)  # 800 alone are above the limit
    assert closed[299].state.operators["map"].rate.mean == pytest.approx(1000, rel=1e-3)


def test_where_latency_has_its_price_the_replay_may_not_be_worth_it():
    # A scaled millisecond costs as much as a scaled record/s: beside 600 records/s each one costs more than it brings.
    assert replay_rates(run_queue(shared_terms(weights={}), [600] * 50))[-1] == 0
    assert replay_rates(run_queue(shared_terms(weights={}), [200] * 50))[-1] > 100


def test_what_is_learned_while_the_prior_is_wrong_keeps_the_limit():
    for prior in (200.0, 900.0):
        terms, plan = shared_terms(), shared_plan(prior_rps=prior)
        closed = run_queue(terms, [600] * 200, state=begin(terms, plan, 1e9))
        assert replay_rates(closed)[-1] == pytest.approx(144.2, abs=1)
        assert all(one.line["y"]["latency_ms"][PATH] <= 20.001 for one in closed)


def test_the_replay_falls_at_once_when_live_records_rise_or_are_foreseen():
    state = run_queue(shared_terms(), [600] * 200)[-1].state
    assert state.controls.replay_rps > 140
    for change in ({"live_rps": 780.0}, {"live_high_rps": 780.0}):
        seen = replace(queue_signals(201, 600, state.controls.replay_rps), **change)
        closed = close_interval(shared_terms(), shared_plan(), state, seen)
        assert closed.controls.replay_rps == 0 and "admission" in closed.line["caps"]


def test_the_guard_stops_the_replay_and_the_ladder_is_climbed_and_left():
    terms = shared_terms(
        controls=LIVE_BOX, shed={"allowed": True, "max_fraction": 0.3}, error={"sketch": {"eps_rel": 0.1, "pf": 0.01}}
    )
    state = run_queue(terms, [600] * 100)[-1].state
    late = {"latency_ms": {PATH: 30.0}, "maintenance_rps": 80.0, "error_rel": 0.01}
    slow = run_queue(terms, [600] * 40, state=state, change=lambda n: late)
    assert [one.state.relief.step for one in slow][:12] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]
    assert slow[0].controls.replay_rps > 0 and all(one.controls.replay_rps == 0 for one in slow[1:])
    assert all(one.controls.quantum == (0.25 if one.state.relief.step else 1) for one in slow)
    assert slow[2].controls.maintenance_rps == pytest.approx(80)
    room = slow[3].controls.credits
    assert slow[3].controls.maintenance_rps < 40 and room.replay == 0 and room.live == pytest.approx(600)
    assert slow[4].controls.theta == 0 and slow[5].controls.theta == 1
    assert slow[6].controls.executors is None and slow[7].controls.executors >= 2
    held = [one.controls.live_rps for one in slow]
    assert held[8] is None and held[9] == pytest.approx(500) and held[11] < held[10] < held[9]
    # Dropped only once live records are held back as far as their box allows.
    first = next(at for at, one in enumerate(slow) if one.controls.shed)
    assert slow[first].controls.shed == 0.3 and held[first - 1] == 100
    early = {"latency_ms": {PATH: 5.0}, "error_rel": 0.01}
    calm = run_queue(terms, [300] * 60, state=slow[-1].state, change=lambda n: early)
    steps = [one.state.relief.step for one in calm]
    assert steps[:10] == [6, 5, 5, 4, 4, 3, 3, 1, 1, 0] and calm[-1].controls.live_rps is None
    risen = [one.controls.live_rps for one in calm if one.controls.live_rps is not None]
    assert all(0 <= after - before <= 100 + 1e-9 for before, after in pairwise(risen))
    assert calm[-1].controls.theta == 0 and calm[-1].controls.shed == 0


def test_without_a_replay_executors_are_asked_for_first_and_one_that_is_ordered_then_waits():
    terms, late = shared_terms(shed={"allowed": True, "max_fraction": 0.3}), {"latency_ms": {PATH: 30.0}}
    alone = run_queue(terms, [600] * 5, change=lambda n: {**late, "replay_backlog": 0.0})
    assert [one.state.relief.step for one in alone] == [0, 4, 4, 6, 6] and alone[1].controls.executors >= 2
    beside = run_queue(terms, [600] * 3, state=alone[-1].state, change=lambda n: late)
    calm = run_queue(terms, [300] * 7, state=beside[-1].state, change=lambda n: {"latency_ms": {PATH: 5.0}})
    assert [one.state.relief.step for one in calm] == [6, 4, 4, 1, 1, 0, 0]
    rates = [one.controls.replay_rps for one in [*beside, *calm]]
    assert rates[:8] == [0] * 8 and rates[8] > 0


def test_a_replay_that_read_until_now_is_stopped_before_executors_are_asked_for():
    state = run_queue(shared_terms(), [600] * 100)[-1].state
    assert state.controls.replay_rps > 0
    late = {"latency_ms": {PATH: 30.0}, "replay_backlog": 0.0}
    ended = run_queue(shared_terms(), [600] * 5, state=replace(state, relief=Relief(0, 1)), change=lambda n: late)
    assert [one.state.relief.step for one in ended] == [1, 1, 4, 4, 4]


def test_without_a_box_for_them_live_records_are_never_held_back():
    state = replace(begin(shared_terms(), shared_plan(), 1e9), relief=Relief(4, 1))
    closed = run_queue(shared_terms(), [990] * 9, state=state)
    assert all(one.state.relief.step == 4 and one.controls.live_rps is None for one in closed)


def test_the_last_tenant_is_held_back_first():
    terms = shared_terms(controls=LIVE_BOX, fairness={"weights": {"gold": 3}})
    tenants = {"gold": 300.0, "iron": 300.0}
    fair = run_queue(terms, [600], change=lambda n: {"tenants": tenants})[-1]
    assert fair.controls.rows == {"gold": 3000, "iron": 3000}
    state = replace(fair.state, relief=Relief(5))
    held = run_queue(terms, [600], state=state, change=lambda n: {"tenants": tenants, "latency_ms": {PATH: 25.0}})[-1]
    assert held.controls.live_rps == 500 and held.controls.rows == {"gold": 3000, "iron": 2000}


def test_credits_follow_the_slowest_operator_that_both_pass():
    operators = (PlannedOperator("a", 1000.0, 1.0, 1.0), PlannedOperator("b", 500.0, 0.5, 0.25))
    terms = shared_terms(paths=[{"ops": ["a", "b"], "quantile": 0.5, "max_ms": 1e5}])
    plan = SharedPlan(operators)
    known = {one.name: ServiceRate(1e12, 1e12 / one.prior_rps) for one in operators}
    state = begin(terms, plan, 0.0)
    sure = {name: replace(one, rate=known[name]) for name, one in state.operators.items()}
    state = replace(state, operators=sure, controls=Controls(replay_rps=900.0))
    seen = Signals(10.0, live_rps=600.0, replay_backlog=1e9, maintenance_rps=20.0)
    closed = close_interval(terms, plan, state, seen)
    # 5 % free: a leaves 350 replayed records/s, b (475 - 300)/0.25 = 700; maintenance takes 20 of a's.
    assert closed.controls.replay_rps == pytest.approx(330, rel=1e-3)
    assert closed.controls.credits.live == pytest.approx(600) and closed.controls.credits.maintenance == 20


def test_micro_batches_are_admitted_by_their_own_margin():
    paths, boxes = [{"ops": ["map"], "quantile": 0.99, "max_ms": 16_900}], {"replay_rps": {"min": 0, "max": 2000}}
    terms = shared_terms(paths=paths, controls=boxes)
    plan = shared_plan(trigger_s=10.0, overhead_s=1.0)
    state = begin(terms, plan, 0.0)
    known = replace(state.operators["map"], rate=ServiceRate(1e12, 1e12 / 2000))
    state = replace(state, operators={"map": known}, controls=Controls(replay_rps=900.0))
    closed = close_interval(terms, plan, state, Signals(10.0, live_rps=1000.0, replay_backlog=1e9))
    assert closed.controls.replay_rps == pytest.approx(200, rel=1e-3)


def test_without_live_rate_or_backlog_the_replay_does_not_rise():
    terms, plan = shared_terms(), shared_plan(prior_rps=1000.0)
    begun = begin(terms, plan, 1e9)
    blind = close_interval(terms, plan, begun, replace(queue_signals(1, 0, 0), live_rps=math.nan))
    assert blind.controls.replay_rps == 0
    state = run_queue(terms, [600] * 20, state=begun)[-1].state
    now = state.controls.replay_rps
    for change in ({"live_rps": None}, {"replay_backlog": math.nan}, {"live_rps": math.inf}):
        seen = replace(queue_signals(21, 300, now), **change)
        closed = close_interval(terms, plan, state, seen)
        assert 0 < closed.controls.replay_rps <= now and "unread" in closed.line["caps"]
    assert close_interval(terms, plan, state, queue_signals(21, 300, now)).controls.replay_rps > now


def test_a_replay_that_ends_is_admitted_as_long_as_it_has_records():
    state = run_queue(shared_terms(), [300] * 100)[-1].state
    for backlog, rate in ((1000.0, 100.0), (5.0, 0.5), (0.0, 0.0)):
        seen = replace(queue_signals(101, 300, state.controls.replay_rps), replay_backlog=backlog)
        closed = close_interval(shared_terms(), shared_plan(), state, seen)
        assert closed.controls.replay_rps == rate and ("backlog" in closed.line["caps"])


@pytest.mark.parametrize("seconds", [0, 199, 195, -1e6])
def test_a_clock_that_goes_back_changes_nothing(seconds):
    state = run_queue(shared_terms(), [600] * 20)[-1].state
    seen = replace(queue_signals(0, 5000, 0), time_s=1e9 + seconds)
    closed = close_interval(shared_terms(), shared_plan(), state, seen)
    assert closed.state is state and closed.controls == state.controls and "clock went back" in closed.line["reason"]


def test_a_boundary_that_was_missed_is_one_interval():
    state = run_queue(shared_terms(), [600] * 20)[-1].state
    closed = close_interval(shared_terms(), shared_plan(), state, queue_signals(50, 300, 0))
    assert closed.state.interval == 50 and closed.controls.replay_rps <= state.controls.replay_rps + 100


def test_a_change_of_executors_makes_the_rates_unsure():
    state = run_queue(shared_terms(), [600] * 50)[-1].state
    before = state.operators["map"].rate
    for change, cold in (({"executors": 2}, 1), ({"changed": True}, 0)):
        closed = run_queue(shared_terms(), [600], state=state, change=lambda n, change=change: change)[-1]
        after = closed.state.operators["map"].rate
        assert after.cold == cold and after.deviation / after.mean > before.deviation / before.mean
    assert closed.state.executors == 1


def test_ratios_are_those_measured_last():
    plan, terms = shared_plan(), shared_terms()
    first = queue_signals(1, 600, 0, operators={"map": OperatorReading(10.0, 0.01, 0.5, 0.25)})
    state = close_interval(terms, plan, begin(terms, plan, 1e9), first).state
    state = close_interval(terms, plan, state, queue_signals(2, 600, 0)).state
    assert (state.operators["map"].live_ratio, state.operators["map"].replay_ratio) == (0.5, 0.25)


def test_a_path_passes_only_what_the_plan_has():
    with pytest.raises(TermsError, match=r"'live map 0\.99' passes 'map', which the plan lacks; it has reduce"):
        begin(shared_terms(), shared_plan("reduce"), 0.0)


def test_seeds_are_the_same_everywhere():
    assert operator_seed(0, "sketch", 1) == 3831027832594681813
    seeds = {operator_seed(seed, name, n) for seed in (0, 1) for name in ("a", "b") for n in range(100)}
    assert len(seeds) == 400 and all(0 <= seed < 2**63 for seed in seeds)
    terms = shared_terms(seed=3, error={"sketch": {"eps_rel": 0.1, "pf": 0.01}})
    assert run_queue(terms, [600])[-1].controls.seeds == {"sketch": operator_seed(3, "sketch", 1)}


NUMBERS = st.none() | st.floats() | st.floats(0, 2000)
READINGS = st.builds(
    lambda live, high, backlog, p99, done, busy, ratio, executors, moved, lag: {
        "live_rps": live, "live_high_rps": high, "replay_backlog": backlog, "executors": executors, "changed": moved,
        "latency_ms": {} if p99 is None else {PATH: p99},
        "operators": {"map": OperatorReading(done, busy, ratio, ratio)}, "lag_ms": lag, "state_bytes": lag,
        "tenants": {"a": done or 0.0, "b": 5.0}, "maintenance_rps": high,
    },
    *[NUMBERS] * 7, st.none() | st.integers(1, 4), st.booleans(), NUMBERS,
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(READINGS, min_size=1, max_size=12), st.booleans())
def test_whatever_is_measured_the_controls_keep_to_the_contract(readings, batches):
    terms = shared_terms(
        controls=LIVE_BOX, lag={"max_ms": 500}, memory={"max_bytes": 900}, seed=1, weights={},
        shed={"allowed": True, "max_fraction": 0.1}, error={"s": {"eps_abs": 1, "pf": 0.1}},
    )  # fmt: skip
    plan = shared_plan(trigger_s=10.0, overhead_s=0.5) if batches else shared_plan()
    state = begin(terms, plan, 1e9)
    for n, reading in enumerate(readings, start=1):
        before, seen = state.controls, Signals(1e9 + 10 * n, **reading)
        controls, state, line = close_interval(terms, plan, state, seen)
        assert 0 <= controls.replay_rps <= min(before.replay_rps + 100, 1000, *line["limits"].values())
        assert controls.live_rps is None or 100 <= controls.live_rps <= 1100
        caps = before.live_rps, controls.live_rps
        assert None in caps or caps[1] - caps[0] <= 0.1 * (1100 - 100) + 1e-6  # it falls to what comes at once
        assert 0 <= controls.theta <= 1 and controls.theta >= before.theta - 0.1 - 1e-9 and controls.shed in (0, 0.1)
        assert state.relief.step == 0 or controls.replay_rps == 0
        assert all(0 <= price <= 10 for price in state.multipliers.values())
        assert build(ControllerState, json.loads(json.dumps(plain(state)))) == state
        assert json.loads(json.dumps(line, allow_nan=False)) == json.loads(json.dumps(line))
