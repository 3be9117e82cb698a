"""The rate that arrives now: worked cases, how few executors noise asks for, and how soon a change is seen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.received.arrival_rate import SPANS, rate_of_seconds, steady_rate
from models.twin.experiment.peak_training import recent_rates

SHORT_S = 3
LONG_S = SPANS[-1] * SHORT_S


def rate(means, record=1.0):
    return float(steady_rate([np.array(mean) for mean in means], SHORT_S, record))


@pytest.mark.parametrize(("means", "now"), [
    ([30.0, 27.0, 26.0, 25.0], 25.0),  # 2.5 * sqrt(25 / 3) = 7.2 records/s are chance
    ([33.0, 27.0, 26.0, 25.0], 26.0),  # 8.0 are not; of the 26 of 24 s 7.4 are
    ([40.0, 30.0, 27.0, 25.0], 40.0),  # a rise that each longer time contradicts
    ([0.0, 20.0, 22.0, 25.0], 0.0),  # nothing comes any more
    ([25.0, 31.0, 27.0, 25.0], 31.0),  # the 27 of 24 s are 4 below those of 12 s, where 3.75 are chance
    ([0.0, 2.0, 1.0, 0.5], 0.0),  # it has stopped: what came 12 s before does not count
    ([1 / 3, 1 / 12, 1 / 24, 1 / 48], 1 / 48),  # a single record is chance
    ([math.nan, 1.0, 1.0, 1.0], math.nan),
])  # fmt: skip
def test_worked_cases(means, now):
    assert rate(means) == pytest.approx(now, nan_ok=True)


def test_noise_is_of_records_whatever_unit_loads_are_scaled_to():
    assert rate([30.0, 27.0, 26.0, 25.0], record=0.1) == 30.0  # of 300 records/s, and 250
    assert rate([300.0, 270.0, 260.0, 250.0], record=10.0) == 250.0


def test_at_first_it_is_the_mean_of_what_was_seen():
    assert rate_of_seconds([20.0], SHORT_S) == 20.0
    assert rate_of_seconds([20.0, 24.0, 22.0, 18.0], SHORT_S) == 21.0


def _seconds(rps, seed):
    return np.random.default_rng(seed).poisson(rps).astype(float).tolist()


@pytest.mark.parametrize("rps", [5.0, 30.0, 300.0])
def test_of_a_load_that_stays_it_has_less_than_half_the_noise_of_the_shortest_mean(rps):
    seconds = _seconds(np.full(2_000, rps), 7)
    ends = range(LONG_S, len(seconds))
    steady = [rate_of_seconds(seconds[end - LONG_S : end], SHORT_S) for end in ends]
    shortest = [np.mean(seconds[end - SHORT_S : end]) for end in ends]
    assert np.mean(steady) == pytest.approx(rps, rel=0.02)
    assert np.std(steady) < 0.5 * np.std(shortest)


def test_a_load_that_doubles_is_seen_within_the_shortest_time():
    seconds = _seconds(np.repeat([50.0, 100.0], LONG_S), 3)
    seen = [rate_of_seconds(seconds[:end][-LONG_S:], SHORT_S) for end in range(LONG_S, 2 * LONG_S)]
    assert seen[0] == pytest.approx(50, rel=0.1) and seen[SHORT_S] > 80
    assert seen[-1] == pytest.approx(100, rel=0.1)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=60))
def test_it_is_one_of_the_means(seconds):
    means = [np.mean(seconds[-span * SHORT_S :]) for span in SPANS]
    assert rate_of_seconds(seconds, SHORT_S) in [pytest.approx(mean) for mean in [*means, 0.0]]


def test_the_twin_tells_the_same_of_the_same_records():
    seconds = _seconds(np.linspace(20, 60, 400), 5)
    arrived = np.concatenate([[0.0], np.cumsum(seconds)])
    moments = np.arange(LONG_S, 400, 13)
    now, _ = recent_rates(arrived, moments, SHORT_S)
    live = [rate_of_seconds(seconds[at - LONG_S : at], SHORT_S) for at in moments.tolist()]
    assert now.tolist() == pytest.approx(live)
