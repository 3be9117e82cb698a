import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.admission import OperatorRoom, queue_margin_rps, replay_rate
from models.contract.declared import build, plain
from models.contract.service_rate import ServiceRate, capacity, dispersion, executors_for


def test_one_batch_by_hand():
    prior = ServiceRate(2.0, 0.01)
    after = prior.updated(500, 0.5, forgetting=1)
    assert (after.shape, after.rate) == pytest.approx((502, 0.51))
    found = (after.mean, after.deviation, after.quantile(0.05), after.quantile(0.95))
    assert found == pytest.approx((984.3137, 43.9321, 913.1837, 1057.6730), abs=5e-5)
    faded = prior.updated(500, 0.5, forgetting=0.9)
    assert (faded.shape, faded.rate, faded.mean) == pytest.approx((501.8, 0.509, 985.8546), abs=5e-5)
    scattered = prior.updated(500, 0.5, dispersion=10, forgetting=1)
    assert (scattered.shape, scattered.rate) == pytest.approx((52, 0.06))
    assert (scattered.mean, scattered.quantile(0.05)) == pytest.approx((866.6667, 678.8981), abs=5e-5)


def test_the_quantile_that_is_planned_with_by_hand():
    prior = ServiceRate.prior(800)
    sure, unsure = (prior.updated(9000, 10, dispersion=d, forgetting=1) for d in (1, 30))
    assert (sure.mean, sure.quantile(0.05)) == pytest.approx((899.9750, 884.4298), abs=5e-5)
    assert (unsure.shape, unsure.rate) == pytest.approx((302, 0.3358333), abs=5e-8)
    assert (unsure.mean, unsure.quantile(0.05)) == pytest.approx((899.2556, 815.8666), abs=5e-5)
    margin = queue_margin_rps(unsure.quantile(0.05), 0.99, 0.1)
    assert margin == pytest.approx(46.0517, abs=5e-5)
    assert replay_rate([OperatorRoom(unsure.quantile(0.05), 1, 1, margin)], 600) == pytest.approx(169.8149, abs=5e-5)


def test_single_service_times_teach_the_same():
    times = [0.8e-3, 1.2e-3, 1.0e-3, 0.9e-3, 1.1e-3]
    after = ServiceRate(2.0, 0.002).updated(len(times), math.fsum(times), forgetting=1)
    assert (after.shape, after.rate, after.mean) == pytest.approx((7, 0.007, 1000))


def test_dispersion_by_hand():
    scatter = tuple((count - 1000) ** 2 / 1000 for count in (980, 1050, 900, 1100, 970))
    assert math.fsum(scatter) / (len(scatter) - 1) == pytest.approx(5.95)
    assert dispersion(scatter) == 30  # of the first five nothing is believed
    assert dispersion((*scatter, 0.0)) == pytest.approx(23.8 / 5)
    assert dispersion((0.0,) * 10) == 1 and dispersion(()) == 30


def test_it_learns_what_a_job_that_is_half_idle_could_do():
    rate = ServiceRate.prior(400)
    for _ in range(40):
        rate = rate.observed(5000, 5.0)  # in 10 s of the clock
    assert rate.mean == pytest.approx(1000, rel=1e-3) and len(rate.scatter) == 30
    assert rate.quantile(0.05) < rate.mean < rate.quantile(0.95)


@pytest.mark.parametrize(("completed", "busy"), [(0, 5), (100, 0), (math.nan, 1), (100, math.nan), (-5, 1)])
def test_an_empty_batch_teaches_nothing(completed, busy):
    rate = ServiceRate.prior(400)
    assert rate.observed(completed, busy) is rate


def test_a_change_makes_unsure_and_new_executors_are_cold():
    rate = ServiceRate(400.0, 0.5).changed()
    assert (rate.shape, rate.rate, rate.cold) == (200, 0.25, 0)
    rate = rate.changed(grown=True)
    assert rate.observed(0, 0).cold == 2  # an empty batch warms nobody
    for _ in range(2):
        before, rate = rate, rate.observed(10, 5.0)
        assert (rate.shape, rate.cold) == (before.shape, before.cold - 1)
    assert rate.observed(10, 5.0).shape != rate.shape


def test_changes_without_end_leave_what_a_prior_weighs():
    rate = ServiceRate(400.0, 0.5)
    for _ in range(5000):
        rate = rate.changed()
    assert rate.shape == pytest.approx(2) and rate.mean == pytest.approx(800)


@given(st.floats(1, 1e5), st.floats(1, 1e6), st.floats(0.01, 100), st.floats(1, 50), st.floats(0.5, 1))
def test_the_mean_lies_between_prior_and_batch(prior_rps, completed, busy, scattered, forgetting):
    prior = ServiceRate.prior(prior_rps)
    after = prior.updated(completed, busy, scattered, forgetting)
    low, high = sorted((prior.mean, completed / busy))
    assert low * (1 - 1e-9) <= after.mean <= high * (1 + 1e-9)
    kept = prior.updated(completed, busy, scattered, forgetting=1)
    assert kept.deviation / kept.mean < prior.deviation / prior.mean
    assert 0 < after.quantile(0.05) < after.quantile(0.95)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 100), st.booleans()), max_size=40))
def test_whatever_is_seen_json_keeps_it(batches):
    rate = ServiceRate.prior(100)
    for completed, busy, moved in batches:
        rate = (rate.changed(grown=True) if moved else rate).observed(completed, busy)
    assert 0 < rate.mean < math.inf and build(ServiceRate, plain(rate)) == rate


def test_capacity_of_executors():
    assert [capacity(n, 100) for n in (0, 1, 4)] == [0, 100, 400]
    assert capacity(4, 100, 0.1) == pytest.approx(400 / 1.3)
    assert executors_for(401, 100) == 5 and executors_for(400, 100) == 4 and executors_for(0, 100) == 1
    assert executors_for(400 / 1.3, 100, 0.1) == 4
    assert executors_for(1000, 100, 0.1) is None  # more than any number does, which is 100/0.1


@given(st.floats(1, 1e5), st.floats(1, 1e3), st.floats(0, 0.5))
def test_the_fewest_executors_are_enough_and_one_less_is_not(needed, rps, contention):
    count = executors_for(needed, rps, contention)
    if count is not None and count < 10**6:
        assert capacity(count, rps, contention) >= needed * (1 - 1e-6)
        assert count == 1 or capacity(count - 1, rps, contention) <= needed * (1 + 1e-6)


@pytest.mark.parametrize("rps", [0, -1, math.nan, math.inf])
def test_a_prior_is_above_nothing(rps):
    with pytest.raises(ValueError, match="calibration run"):
        ServiceRate.prior(rps)
