"""What the ladder does to live records, executors and tenants."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.admission import Margin, OperatorRoom, replay_rate
from models.contract.fairness import Credits
from models.contract.relief import ReliefStep
from models.contract.relief_effects import (
    divide_capacity,
    divide_tenants,
    error_share,
    executors_asked,
    highest_step,
    live_cap,
    steps_without_effect,
)
from models.contract.service_rate import ServiceRate
from models.contract.signals import Signals
from models.contract.state import Controls, KnownOperator
from tests.fakes.shared_job import shared_plan, shared_terms

BOXES = {"replay_rps": {"min": 0, "max": 1000}, "live_rps": {"min": 100, "max": 1100}}
SHED = {"allowed": True, "max_fraction": 0.2}
ERROR = {"top": {"eps_rel": 0.01, "pf": 0.001}}
HEARD = {"maintenance_rps": 5.0, "error_rel": 0.0}


def test_records_are_shed_only_where_it_is_allowed_and_nothing_else_is_left():
    assert highest_step(shared_terms(), Controls()) == ReliefStep.CAPACITY
    assert highest_step(shared_terms(controls=BOXES, shed=SHED), Controls(live_rps=200.0)) == ReliefStep.THROTTLE
    assert highest_step(shared_terms(controls=BOXES, shed=SHED), Controls(live_rps=100.0)) == ReliefStep.SHED
    assert highest_step(shared_terms(controls=BOXES), Controls(live_rps=100.0)) == ReliefStep.THROTTLE
    assert highest_step(shared_terms(shed=SHED), Controls()) == ReliefStep.SHED


@pytest.mark.parametrize(
    ("declared", "signals", "replay_rps", "passed"),
    [
        ({}, {}, 0, {ReliefStep.MAINTENANCE, ReliefStep.THETA, ReliefStep.THROTTLE}),
        ({"controls": BOXES}, {"maintenance_rps": 0.0}, 0, {ReliefStep.MAINTENANCE, ReliefStep.THETA}),
        ({"controls": BOXES}, {"maintenance_rps": 5.0}, 0, {ReliefStep.THETA}),
        ({"controls": BOXES}, HEARD, 0, {ReliefStep.THETA}),
        ({"controls": BOXES, "error": ERROR}, {"maintenance_rps": 5.0}, 0, {ReliefStep.THETA}),
        ({"controls": BOXES, "error": ERROR}, HEARD, 0, set()),
        ({"controls": BOXES, "error": ERROR}, HEARD | {"replay_backlog": 0.0}, 0, {ReliefStep.REPLAY}),
        ({"controls": BOXES, "error": ERROR}, HEARD | {"replay_backlog": 0.0}, 70.0, set()),
        ({"controls": BOXES, "error": ERROR}, HEARD | {"replay_backlog": 9.0}, 0, set()),
    ],
)
def test_a_step_has_no_effect_where_there_is_nothing_to_give_up(declared, signals, replay_rps, passed):
    seen = Signals(0.0, **signals)
    assert steps_without_effect(shared_terms(**declared), seen, Controls(replay_rps=replay_rps)) == passed


@pytest.mark.parametrize(
    ("cap", "step", "worst", "live", "after"),
    [
        (None, 4, 2.0, 600.0, None),  # not yet
        (None, 5, 2.0, 600.0, 500.0),
        (None, 5, 2.0, None, 1000.0),  # below the box's end, where nothing is known of them
        (500.0, 5, 2.0, 900.0, 400.0),
        (150.0, 6, 2.0, 900.0, 100.0),
        (500.0, 5, 1.0, 900.0, 500.0),
        (500.0, 5, None, 900.0, 500.0),
        (500.0, 4, 2.0, 900.0, 600.0),
        (1050.0, 0, 0.5, 900.0, None),
    ],
)
def test_live_records_are_held_back_by_steps_and_let_go_by_steps(cap, step, worst, live, after):
    assert live_cap(shared_terms(controls=BOXES), Controls(live_rps=cap), step, worst, live) == after


def test_capacity_is_divided_where_both_pass():
    terms, seen = shared_terms(), Signals(0.0, replay_backlog=1e6, maintenance_rps=100.0)
    slow = OperatorRoom(1000.0, 1.0, 0.5, 100.0)
    assert divide_capacity(terms, seen, [slow], 600.0, 0) == Credits(600, 100, 400)
    assert divide_capacity(terms, seen, [slow], 600.0, 1) == Credits(600, 100, 0)
    assert divide_capacity(terms, seen, [slow], 600.0, 2) == Credits(600, 45, 0)
    assert divide_capacity(terms, replace(seen, replay_backlog=70.0), [slow], 0.0, 0) == Credits(0, 100, 7)
    apart = slow._replace(replay_ratio=0.0)
    assert divide_capacity(terms, seen, [apart], 600.0, 0) == Credits(600, 100, 1000)


@given(st.floats(0.1, 200.0), st.floats(0.1, 10.0), st.floats(0.0, 2000.0), st.integers(1, 100))
def test_beside_live_records_alone_priorities_leave_a_replay_all_that_is_left(margin, ratio, live, weight):
    """So the contract's page may say that a running job, which asks for no maintenance, does not use them."""
    terms, seen = shared_terms(priorities={"replay": weight, "maintenance": weight}), Signals(0.0, replay_backlog=1e9)
    room = OperatorRoom(1000.0, 1.0, ratio, margin)
    left = min(replay_rate([room], live), terms.controls.replay_rps.max)
    assert divide_capacity(terms, seen, [room], live, 0).replay >= left * (1 - 1e-9)


def test_theta_goes_to_its_limit_at_once_and_comes_back_by_steps():
    terms = shared_terms(controls={**BOXES, "theta": {"min": 0.2, "max": 0.8, "slew": 0.5}})
    assert [error_share(terms, 0.2, step) for step in (2, 3)] == [0.2, 0.8]
    assert error_share(terms, 0.8, 0) == pytest.approx(0.5) and error_share(terms, 0.3, 0) == 0.2


def test_executors_are_asked_for_live_records_and_their_margin():
    terms, plan = shared_terms(), shared_plan()
    known = {"map": KnownOperator(ServiceRate(1e12, 1e10), 1.0, 1.0)}  # 100 records/s each, and a hair of doubt
    assert executors_asked(terms, plan, known, 600.0, 3, 1.1, None) == 9  # 230/s beside them: p99 within 20 ms
    assert executors_asked(terms, plan, known, 100.0, 4, 1.1, None) == 5  # more than there are: a limit is violated
    assert executors_asked(terms, plan, known, 100.0, None, 1.1, None) == 4
    assert executors_asked(terms, replace(plan, contention=0.2), known, 600.0, 3, 1.1, None) is None
    for worst in (None, 0.95, 1.0):  # no limit is violated: what is asked for stays, and does not grow with what comes
        assert [executors_asked(terms, plan, known, 100.0, now, worst, 6) for now in (4, 5, 6)] == [6, 6, 6]
        assert executors_asked(terms, plan, known, 600.0, 6, worst, 6) == 9
        assert executors_asked(terms, plan, known, 100.0, 9, worst, None) == 4
    # Those that were asked for are waited for, and what they bring.
    assert [executors_asked(terms, plan, known, 100.0, now, 1.3, 4) for now in (3, 4)] == [4, 5]
    assert [executors_asked(terms, plan, known, 100.0, now, 1.3, 4, starting=True) for now in (3, 4)] == [4, 4]
    assert executors_asked(terms, plan, known, 600.0, 4, 1.3, 4, starting=True) == 9
    # A twentieth is more than 230 records/s there: of what they will serve, not of what those that run do.
    assert [executors_asked(terms, plan, known, 9400.0, now, 1.1, None) for now in (1, 10, 90)] == [99, 99, 99]


def test_micro_batches_have_their_margin_of_what_is_asked_for():
    terms = shared_terms(paths=[{"ops": ["map"], "quantile": 0.99, "max_ms": 20_000}])
    known = {"map": KnownOperator(ServiceRate(1e12, 1e10), 1.0, 1.0)}
    plan = shared_plan(trigger_s=10.0, overhead_s=1.0)  # nine tenths of a trigger's time may be worked in
    assert executors_asked(terms, plan, known, 1000.0, 2, 1.1, None) == 12
    # 20 ms, of which a batch takes 1 s.
    assert executors_asked(shared_terms(), plan, known, 1000.0, 2, 1.1, None) is None


@given(st.floats(0, 0.99), st.floats(0, 1e4), st.floats(0, 1e5))
def test_a_margin_is_left_by_the_least_service_rate_that_does(share, rps, used):
    margin = Margin(share, rps)
    served = margin.service_rps(used)
    assert served - margin.of(served) == pytest.approx(used, rel=1e-9, abs=1e-6)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.floats(0, 500)), st.none() | st.floats(0, 900), st.sampled_from([0, 5])
)
def test_tenants_never_get_more_than_is_admitted(tenants, cap, step):
    rows, owed = divide_tenants(shared_terms(), Signals(0.0, tenants=tenants), cap, step, {})
    assert set(rows) == set(owed) == set(tenants)
    assert sum(rows.values()) <= (math.inf if cap is None else 10 * cap) + 1e-6
    assert all(own <= math.ceil(10 * tenants[name]) for name, own in rows.items())
