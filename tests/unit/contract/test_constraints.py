"""What limits say of a job, measured and predicted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.constraints import OperatorLoad, Situation, measured_constraints, predict, worst_ratio
from models.contract.queueing import micro_batch, sojourn_quantile_s
from models.contract.signals import Signals
from tests.fakes.shared_job import PATH, declared, shared_plan, shared_terms

LIMITS = {
    "memory": {"max_bytes": 1000}, "lag": {"max_ms": 5000, "drift_max": 10}, "energy": {"max_cores": 4},
}  # fmt: skip


def situation(terms, plan=None, live_rps=600.0, replay_rps=0.0, service_rps=1000.0, **signals):
    plan = plan or shared_plan()
    loads = {one.name: OperatorLoad(service_rps, 1.0, 1.0, 0.005, 2.0) for one in plan.operators}
    return Situation(terms, plan, loads, Signals(0.0, **signals), live_rps, replay_rps)


def test_measured_by_hand():
    terms = shared_terms(**LIMITS)
    seen = Signals(
        0.0, latency_ms={PATH: 23.0259}, state_bytes=600, queue_bytes=300, lag_ms=9000, energy_cores=1.8,
        busy={"cpu": 0.85, "gpu": 1.0},
    )  # fmt: skip
    assert measured_constraints(terms, seen, 110.0) == pytest.approx(
        {PATH: 0.246246, "memory": 0, "lag": math.log(2), "lag_drift": 0.1, "energy": -math.log(2),
         "cpu": -math.log(0.9)},
        abs=2e-6,
    )  # fmt: skip
    assert worst_ratio(terms, seen) == pytest.approx(1.8)
    assert worst_ratio(shared_terms(), seen) == pytest.approx(1.151295)


def test_what_was_not_read_says_nothing():
    terms = shared_terms(**LIMITS)
    assert measured_constraints(terms, Signals(0.0), None) == {} and worst_ratio(terms, Signals(0.0)) is None


def test_predicted_by_hand():
    cost, found = predict(situation(shared_terms()), 200.0)
    assert found == pytest.approx({PATH: 0.246246}, abs=2e-6)
    # 23.03 ms of 20, 4 cores of 8, 0.98168 of 600 live records/s, and all of the replay's 200, which has no limit.
    assert cost == pytest.approx(23.02585 / 20 + 0.2 * 4 / 8 - (600 * 0.981684 + 200) / 1000, abs=1e-5)


def test_what_is_measured_moves_with_the_model():
    terms = shared_terms(**LIMITS)
    asked = situation(terms, state_bytes=892.0, lag_ms=4000.0, busy={"cpu": 0.6375, "net": 0.3, "mem": 0.9})
    _, same = predict(asked, 0.0)
    _, more = predict(asked, 200.0)
    assert same["lag"] == pytest.approx(math.log(4000 / 4500)) and same["cpu"] == pytest.approx(math.log(1 / 1.2))
    moved_ms = 1000 * (sojourn_quantile_s(800, 1000, 0.99) - sojourn_quantile_s(600, 1000, 0.99))
    assert more["lag"] == pytest.approx(math.log((4000 + moved_ms) / 4500))
    assert more["cpu"] == pytest.approx(same["cpu"] + math.log(800 / 600))
    assert more["memory"] == pytest.approx(0)  # 892 bytes of state and 4 records of 2 bytes, of 1000 with a tenth free
    assert more["energy"] == pytest.approx(math.log(4 / 3.6)) and more["lag_drift"] == pytest.approx(-0.21)
    assert "mem" not in more


def test_busy_cores_move_with_the_work_and_the_network_with_the_records():
    paths = [{"ops": ["light", "heavy"], "quantile": 0.99, "max_ms": 60}]
    plan, seen = shared_plan("light", "heavy"), Signals(0.0, busy={"cpu": 0.5, "net": 0.5})
    loads = {"light": OperatorLoad(9e3, 1.0, 0.0, 0.001, 0.0), "heavy": OperatorLoad(9e3, 0.0, 1.0, 0.01, 0.0)}
    asked = Situation(shared_terms(paths=paths), plan, loads, seen, 1000.0, 100.0)
    (_, same), (_, more) = predict(asked, 100.0), predict(asked, 200.0)
    assert more["cpu"] == pytest.approx(same["cpu"] + math.log(3 / 2))  # 1 s of live records; 1 s replayed, then 2
    assert more["net"] == pytest.approx(same["net"] + math.log(1200 / 1100))


def test_a_path_takes_the_sum_of_its_operators():
    terms = shared_terms(paths=[{"ops": ["a", "b"], "quantile": 0.99, "max_ms": 60}])
    _, found = predict(situation(terms, shared_plan("a", "b")), 200.0)
    assert found["live a>b 0.99"] == pytest.approx(math.log(2 * 23.02585 / 54), abs=1e-5)


def test_micro_batches_have_their_own_latency():
    terms = shared_terms(paths=[{"ops": ["map"], "quantile": 0.99, "max_ms": 20_000}], memory={"max_bytes": 5e4})
    asked = situation(terms, shared_plan(trigger_s=10.0, overhead_s=1.0), 1000.0, service_rps=2000.0, state_bytes=0.0)
    _, found = predict(asked, 200.0)
    assert found["live map 0.99"] == pytest.approx(math.log(16.9 / 18))
    held = 2 * 1200 * micro_batch(1200, 2000, 1, 10).mean_s
    assert found["memory"] == pytest.approx(math.log(held / 4.5e4))


def test_the_replay_counts_by_its_own_limit():
    late = {"ops": ["map"], "quantile": 0.5, "max_ms": 1, "class": "replay"}
    free, _ = predict(situation(shared_terms()), 200.0)
    costly, _ = predict(situation(shared_terms(paths=[*declared()["paths"], late])), 200.0)
    assert costly - free == pytest.approx(0.2 * math.exp(-0.2), rel=1e-6)


@given(st.floats(0, 3000), st.floats(0, 3000), st.floats(1e-9, 3000), st.booleans())
def test_the_prediction_is_finite_and_a_faster_replay_never_helps_a_limit(live, replay, service, batches):
    plan = shared_plan(trigger_s=10.0, overhead_s=1.0) if batches else shared_plan()
    asked = situation(shared_terms(**LIMITS), plan, live, 0.0, service, state_bytes=10.0, lag_ms=100.0)
    cost, found = predict(asked, replay)
    _, more = predict(asked, replay + 10)
    assert math.isfinite(cost) and all(-2 <= value <= 2 for value in found.values())
    assert all(more[name] >= value - 1e-9 for name, value in found.items())
