import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.queueing import (
    delay_probability,
    mean_sojourn_s,
    mean_wait_s,
    micro_batch,
    number_in_system,
    open_windows,
    share_within,
    sojourn_quantile_s,
    state_bytes,
)


@pytest.mark.parametrize(("load", "number"), [(0.5, 1), (0.8, 4), (0.95, 19), (1.0, 39), (1.1, 79)])
def test_number_in_system_goes_on_by_its_tangent(load, number):
    assert number_in_system(load) == pytest.approx(number)


def test_sojourn_by_hand():
    assert mean_sojourn_s(800, 1000) == pytest.approx(0.005)
    assert sojourn_quantile_s(800, 1000, 0.5) == pytest.approx(3.4657e-3, abs=5e-8)
    assert sojourn_quantile_s(800, 1000, 0.99) == pytest.approx(23.0259e-3, abs=5e-8)
    assert share_within(800, 1000, 0.02) == pytest.approx(0.98168, abs=5e-6)
    # Beyond saturation: slack 0 is one least slack of 50 under the least, which doubles the 20 ms there.
    assert mean_sojourn_s(1000, 1000) == pytest.approx(0.04) and mean_sojourn_s(1050, 1000) == pytest.approx(0.06)
    assert share_within(1200, 1000, 0.02) == 0


@given(st.floats(0, 3), st.floats(1e-3, 1e6), st.floats(0.01, 0.999))
def test_latency_is_finite_and_rises_with_load(load, service, level):
    here, more = (sojourn_quantile_s(at * service, service, level) for at in (load, load + 0.01))
    assert 0 < here < more < math.inf
    assert number_in_system(load) < number_in_system(load + 0.01)


@given(st.floats(-1e-6, 1e-6))
def test_the_tangent_meets_value_and_slope(offset):
    assert number_in_system(0.95 + offset) == pytest.approx(19 + 400 * offset, rel=1e-8)
    assert mean_sojourn_s(950 + 1000 * offset, 1000) == pytest.approx(0.02 + 0.4 * offset, rel=1e-8)


def test_several_servers_by_hand():
    assert delay_probability(4, 3.2) == pytest.approx(0.59643, abs=5e-6)
    assert 1000 * mean_wait_s(4, 800, 250) == pytest.approx(2.98216, abs=5e-6)
    assert 1000 * (mean_wait_s(4, 800, 250) + 1 / 250) == pytest.approx(6.98216, abs=5e-6)
    assert mean_wait_s(4, 1000, 250) == math.inf and delay_probability(4, 4.0) == 1


@given(st.floats(0.01, 0.99))
def test_one_server_is_mm1(load):
    assert delay_probability(1, load) == pytest.approx(load)
    assert mean_wait_s(1, load, 1.0) == pytest.approx(1 / (1 - load) - 1)


@pytest.mark.parametrize(
    ("live", "batch", "interval", "p99"), [(1200, 7, 10, 16.9), (1800, 10, 10, 19.9), (1900, 20, 20, 39.8)]
)
def test_micro_batches_by_hand(live, batch, interval, p99):
    found = micro_batch(live, 2000, 1.0, 10.0)
    assert (found.batch_s, found.interval_s, found.quantile_s(0.99)) == pytest.approx((batch, interval, p99))


def test_micro_batches_near_saturation():
    assert micro_batch(1200, 2000, 1.0, 10.0).mean_s == pytest.approx(12)
    assert micro_batch(1990, 2000, 1.0, 10.0).batch_s == pytest.approx(200)
    assert micro_batch(1801, 2000, 1.0, 10.0).batch_s > 10
    assert micro_batch(1999, 2000, 1.0, 10.0).stable and not micro_batch(2000, 2000, 1.0, 10.0).stable
    assert micro_batch(3000, 2000, 0.0, 10.0).batch_s == pytest.approx(15)


def test_share_of_a_batch_within_a_limit():
    found = micro_batch(1200, 2000, 1.0, 10.0)  # latencies from 7 to 17 s
    assert [found.share_within(limit) for limit in (6, 12, 18)] == pytest.approx([0, 0.5, 1])
    assert micro_batch(2000, 2000, 1.0, 10.0).share_within(1e9) == 0


@given(st.floats(0, 3), st.floats(1e-3, 1e5), st.floats(0, 20), st.floats(0.1, 60))
def test_batches_grow_with_the_load_and_fit_their_equation(load, service, overhead, trigger):
    found = micro_batch(load * service, service, overhead, trigger)
    assert 0 <= found.batch_s < math.inf and found.interval_s >= trigger
    assert micro_batch((load + 0.01) * service, service, overhead, trigger).batch_s >= found.batch_s
    if load < 0.998:
        assert found.batch_s == pytest.approx(overhead + load * found.interval_s)


def test_state_by_hand():
    assert state_bytes(1e6, 64, 4) == 256e6 and state_bytes(1e6, 64, 4, overhead=0.5) == 384e6
    assert open_windows(60, 10, 30) == 9 and open_windows(30, 10) == 3 and open_windows(60, 60, 1) == 2


@pytest.mark.parametrize("service", [0.0, -1.0, math.nan])
def test_nothing_is_served_at_no_rate(service):
    for model in (mean_sojourn_s, lambda live, rate: mean_wait_s(2, live, rate), lambda a, b: micro_batch(a, b, 1, 1)):
        with pytest.raises(ValueError, match=r"service_rps=.* calibrated prior"):
            model(1.0, service)
