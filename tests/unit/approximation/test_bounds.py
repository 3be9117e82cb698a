"""Sizes and bounds against numbers worked out by hand; the printed ones are of the paper's plan."""

import math

import pytest

from models.replication.approximation.samples import (
    count_deviation,
    join_recall,
    mean_deviation,
    proportion_error,
    proportion_size,
    sampling_rate,
)
from tidecast.signed.approximate.approximations import approx_distinct, sampled_count, sampled_mean, sampled_sum
from tidecast.signed.approximate.bounds import (
    around,
    count_min_bound,
    count_min_size,
    difference_error,
    hyperloglog_error,
    hyperloglog_precision,
    kll_rank_error,
    kll_size,
    sampled_mean_error,
    sampled_sum_error,
)
from tidecast.signed.columns import SignedError

SIGMA = 0.3173105078629141
"""Probability of an error beyond one standard deviation."""


def test_count_min_sizes_are_powers_of_two_and_keep_what_is_asked():
    assert count_min_size(0.01, 0.01) == (512, 5)
    assert count_min_size(0.001, 0.001) == (4096, 7)
    assert math.ceil(math.e / 0.01) == 272 and math.ceil(math.e / 0.001) == 2719
    assert count_min_bound(512, 5) == pytest.approx((0.0053091, 0.0067379), rel=1e-4)
    assert count_min_bound(1024, 1)[0] * 1e6 == pytest.approx(2654.57, abs=0.01)


@pytest.mark.parametrize(("p", "percent"), [(10, 3.25), (11, 2.298), (12, 1.625), (14, 0.8125)])
def test_hyperloglog_errors(p, percent):
    assert hyperloglog_error(p, SIGMA) * 100 == pytest.approx(percent, abs=5e-4)
    assert hyperloglog_precision(percent / 100 * 1.001, SIGMA) == p


def test_a_precision_that_no_sketch_has_is_refused_with_what_can_be_had():
    with pytest.raises(ValueError, match=r"0\.002 at most; count exactly"):
        hyperloglog_precision(1e-5, 0.005)
    with pytest.raises(ValueError, match="sort instead"):
        kll_size(1e-6, 0.005)


def test_kll_sizes_are_the_least_that_keep_a_rank_error():
    assert kll_rank_error(200, 0.01) == pytest.approx(0.01928, abs=1e-5)  # what DataSketches prints for 200
    k = kll_size(0.01, 0.005)
    assert kll_rank_error(k, 0.005) <= 0.01 < kll_rank_error(k - 1, 0.005)
    assert kll_size(0.9, 0.01) == 8


@pytest.mark.parametrize("pf", [0.001, 0.005, 0.05])
@pytest.mark.parametrize("eps", [0.001, 0.02, 0.05, 0.3, 0.9])
def test_theta_sizes_are_the_least_whose_stated_bound_keeps_the_error(eps, pf):
    log_k = int(approx_distinct("x", eps=eps, pf=pf, once=True)["log_k"])
    for many in (2**log_k + 1, 10**9):
        assert difference_error(many, many, 2**log_k, pf) <= eps * many
        assert log_k == 4 or eps * many < difference_error(many, many, 2 ** (log_k - 1), pf)


def test_reservoirs():
    assert proportion_error(1000, 0.05) == pytest.approx(0.03099, abs=1e-5)
    assert proportion_error(1000, 0.05, 10_000) == pytest.approx(0.02940, abs=1e-5)
    assert sampled_mean_error(1000, 0.0, 1.0, 0.05) == pytest.approx(0.04295, abs=1e-5)
    assert mean_deviation(2.0, 100) == pytest.approx(0.2) and mean_deviation(2.0, 100, 100) == 0.0
    assert proportion_size(0.031, 0.05) == 1000


def test_bernoulli_samples():
    assert count_deviation(0.1, 1e5) == pytest.approx(0.0094868, abs=1e-7)
    rate = sampling_rate(0.02, SIGMA, 1e5)
    assert count_deviation(rate, 1e5) == pytest.approx(0.02)
    assert sampled_sum_error(1e5, 1.0, 1.0, 0.01) == 0.0
    by_hand = 2 * math.log(400) * 1e6 * 0.9 / 0.1  # Bernstein's main term
    assert math.sqrt(by_hand) < sampled_sum_error(1e6, 0.1, 1.0, 0.01) < 1.05 * math.sqrt(by_hand)


def test_similarity_joins():
    assert join_recall(0.8, 4, 4) == pytest.approx(0.878497, abs=1e-6)


def test_the_half_width_around_an_estimate_holds_the_truth_at_both_ends():
    for truth in (100 / 1.1, 100 / 0.9):
        assert abs(100 - truth) <= around(100, 0.1) + 1e-9


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_shares_that_are_none_are_refused(share):
    with pytest.raises(ValueError, match="more than 0 and less than 1"):
        count_min_size(share, 0.01)
    with pytest.raises(ValueError, match="more than 0 and less than 1"):
        kll_rank_error(100, share)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_a_group_without_a_row_is_zero_within_the_bound_of_an_empty_sample(rate):
    counted = sampled_count(pf=0.01)
    error = counted.absent_error(rate)
    most_that_a_sample_misses = math.log(0.01) / math.log(1 - rate)  # (1 − r)^n = pf
    assert most_that_a_sample_misses <= error == sampled_sum_error(0.0, rate, 1.0, 0.01)
    assert sampled_sum("x", most=50.0, pf=0.01).absent_error(rate) == pytest.approx(50 * error)
    assert counted.absent_error(1.0) == 0.0


def test_nothing_is_said_of_a_group_without_a_row_where_nothing_is_known():
    with pytest.raises(SignedError, match="sampled mean: nothing is known of a group without a row"):
        sampled_mean("x", 0.0, 1.0).absent_error(0.5)
    with pytest.raises(SignedError, match=r"rate=0\.0: give the sample's"):
        sampled_count().absent_error(0.0)
