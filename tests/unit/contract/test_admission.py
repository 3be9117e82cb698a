import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.admission import (
    OperatorRoom,
    applied_rate,
    batch_margin_rps,
    find_bottleneck,
    operator_margin,
    queue_margin_rps,
    replay_rate,
)
from models.contract.queueing import micro_batch, sojourn_quantile_s
from models.contract.signals import PlannedOperator, SharedPlan
from models.contract.terms import ControlBox
from tests.fakes.shared_job import shared_terms

RATES = st.floats(0.1, 1e6)
ROOMS = st.lists(st.builds(OperatorRoom, RATES, st.floats(0, 5), st.floats(0.01, 5), st.floats(0, 1e4)), min_size=1)


def test_margins_by_hand():
    assert queue_margin_rps(900, 0.99, 0.1) == pytest.approx(46.0517, abs=5e-5)
    assert queue_margin_rps(500, 0.95, 0.08) == pytest.approx(37.4467, abs=5e-5)
    assert queue_margin_rps(40, 0.99, 2.0) == pytest.approx(2.3026, abs=5e-5)
    assert queue_margin_rps(1000, 0.99, 2.0) == 50  # a twentieth of the rate
    assert batch_margin_rps(2000, 0.99, 16.9, 1.0, 10.0) == pytest.approx(800)
    assert batch_margin_rps(2000, 0.99, 60.0, 1.0, 10.0) == pytest.approx(200)  # only that the batch fits its trigger
    assert batch_margin_rps(2000, 0.99, 5.0, 1.0, 10.0) > 2000  # not even an empty batch keeps that


def test_of_a_path_of_two_operators_each_has_half_of_the_limit():
    path = {"ops": ("map", "join"), "quantile": 0.99, "max_ms": 100}
    terms = shared_terms(paths=[path])
    plan = SharedPlan((PlannedOperator("map", 900.0), PlannedOperator("join", 900.0)))
    for name in path["ops"]:
        assert operator_margin(terms, plan, name).rps == pytest.approx(92.1034, abs=5e-5)  # that of 50 ms
    assert operator_margin(terms, plan, "map").of(900) == queue_margin_rps(900, 0.99, 0.05)


@given(RATES, st.floats(0.01, 0.999), st.floats(0.01, 100))
def test_with_the_margin_free_the_limit_is_just_kept(service, level, limit):
    margin = queue_margin_rps(service, level, limit)
    if margin < service:
        assert sojourn_quantile_s(service - margin, service, level) <= limit * (1 + 1e-6)


@given(st.floats(1, 1e5), st.floats(0.01, 0.999), st.floats(0.1, 200), st.floats(0.01, 5), st.floats(0.1, 60))
def test_so_it_is_in_micro_batches(service, level, limit, overhead, trigger):
    margin = batch_margin_rps(service, level, limit, overhead, trigger)
    if margin < service:
        kept = micro_batch(service - margin, service, overhead, trigger)
        assert kept.batch_s <= trigger * (1 + 1e-6) and kept.quantile_s(level) <= limit * (1 + 1e-6)


@pytest.mark.parametrize(
    ("service", "live", "rate"), [(1000, 600, 350), (1000, 980, 0), (1000, 950, 0), (1000, 0, 950), (500, 700, 0)]
)
def test_what_is_left_beside_live_records(service, live, rate):
    assert replay_rate([OperatorRoom(service, 1, 1, 50)], live) == rate


def test_the_operator_that_leaves_least_decides():
    shared = [OperatorRoom(mu, r, r, 0.1 * mu) for mu, r in ((5000, 1), (1800, 0.6), (900, 0.3))]
    assert [one.spare_rps(1500) for one in shared] == pytest.approx([3000, 1200, 1200])
    assert replay_rate(shared, 1500) == pytest.approx(1200)
    # A replay that does not pass the slow ones is not held up by them.
    only_first = [shared[0], *(one._replace(replay_ratio=0) for one in shared[1:])]
    assert replay_rate(only_first, 1500) == pytest.approx(3000) and find_bottleneck(only_first, 1500) is shared[0]
    assert replay_rate([shared[0]._replace(replay_ratio=0)], 1500) == math.inf


def test_no_operator_is_an_error():
    with pytest.raises(ValueError, match="Name those that it shares"):
        replay_rate([], 600)


def test_an_operator_that_serves_nothing_admits_nothing():
    assert replay_rate([OperatorRoom(0.0, 1, 1, 0)], 0) == 0


def test_the_rate_rises_in_steps_and_falls_at_once():
    box = ControlBox(0, 1000)
    assert applied_rate([350, 900], 1e9, 10, 0, box) == 100
    assert applied_rate([350, 900], 1e9, 10, 300, box) == 350
    assert applied_rate([0, 900], 1e9, 10, 900, box) == 0
    assert applied_rate([350], 1200, 10, 300, box) == 120  # the last records of the replay
    assert applied_rate([math.inf], math.inf, 10, 950, box) == 1000
    assert applied_rate([30], 1e9, 10, 60, ControlBox(50, 1000)) == 30  # the box's minimum yields


@given(ROOMS, st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e3), st.floats(0, 1e6), st.floats(0, 1e3))
def test_the_replay_stays_under_its_cap_and_falls_at_once_when_live_rises(rooms, live, more, before, backlog, wanted):
    box = ControlBox(0, 1000)

    def applied(live_rps):
        return applied_rate([replay_rate(rooms, live_rps), wanted], backlog, 10, before, box)

    assert 0 <= applied(live) <= min(replay_rate(rooms, live), before + 100, 1000)
    assert applied(live + more) <= applied(live)
    assert applied(live + more) <= replay_rate(rooms, live + more)
