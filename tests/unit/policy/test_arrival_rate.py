"""The rate that arrives now: worked cases, how few executors noise asks for, and how soon a change is seen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.received.arrival_rate import SPANS, add_seconds, rate_of_seconds, steady_rate
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import Belief, TwinJob, stack
from models.twin.sim.run import observe
from models.twin.sim.state import begin

SHORT_S = 3
LONG_S = SPANS[-1] * SHORT_S
JOBS = stack([TwinJob(0.1, 0.004, most=4, tasks=64, startup_s=(10.0,))], Belief(0.2, 0.009, 1.0))


def rate(means):
    return float(steady_rate([np.array(mean) for mean in means], SHORT_S))


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


def test_at_first_it_is_the_mean_of_what_was_seen():
    assert rate_of_seconds([20.0]) == 20.0
    assert rate_of_seconds([20.0, 24.0, 22.0, 18.0]) == 21.0


def _seconds(rps, seed):
    return np.random.default_rng(seed).poisson(rps).astype(float).tolist()


@pytest.mark.parametrize("rps", [5.0, 30.0, 300.0])
def test_of_a_load_that_stays_it_has_less_than_half_the_noise_of_the_shortest_mean(rps):
    seconds = _seconds(np.full(2_000, rps), 7)
    ends = range(LONG_S, len(seconds))
    steady = [rate_of_seconds(seconds[end - LONG_S : end]) for end in ends]
    shortest = [np.mean(seconds[end - SHORT_S : end]) for end in ends]
    assert np.mean(steady) == pytest.approx(rps, rel=0.02)
    assert np.std(steady) < 0.5 * np.std(shortest)


def test_a_load_that_doubles_is_seen_within_the_shortest_time():
    seconds = _seconds(np.repeat([50.0, 100.0], LONG_S), 3)
    seen = [rate_of_seconds(seconds[:end][-LONG_S:]) for end in range(LONG_S, 2 * LONG_S)]
    assert seen[0] == pytest.approx(50, rel=0.1) and seen[SHORT_S] > 80
    assert seen[-1] == pytest.approx(100, rel=0.1)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=60))
def test_it_is_one_of_the_means(seconds):
    means = [np.mean(seconds[-span * SHORT_S :]) for span in SPANS]
    assert rate_of_seconds(seconds) in [pytest.approx(mean) for mean in [*means, 0.0]]


def test_an_interval_counts_by_its_seconds_and_what_was_before_a_gap_not_at_all():
    assert add_seconds((1.0, 2.0), 7.0, 1.02, 0.1) == (1.0, 2.0, 7.0)
    assert add_seconds((1.0, 2.0), 7.0, 2.9, 0.1) == (1.0, 2.0, 7.0, 7.0, 7.0)
    assert add_seconds((1.0, 2.0), 7.0, 0.4, 6.0) == (7.0,)
    assert len(add_seconds((1.0,) * LONG_S, 7.0, 4.0, 0.0)) == LONG_S


@pytest.mark.parametrize("span_s", [LONG_S, 1e15, math.inf])
def test_of_an_interval_longer_than_what_is_looked_back_on_no_more_is_kept(span_s):
    assert add_seconds((1.0, 2.0), 7.0, span_s, 0.1) == (7.0,) * LONG_S


def test_the_twin_tells_the_same_of_the_same_records():
    seconds = _seconds(np.linspace(20, 60, 400), 5)
    arrived = np.concatenate([[0.0], np.cumsum(seconds)])
    for at in range(LONG_S, 400, 13):
        live = rate_of_seconds(seconds[at - LONG_S : at])
        load = Load(arrived[None], np.zeros(1, np.int64))
        state = begin(JOBS, np.ones(1), np.zeros(1, np.int64))
        seen = observe(state, JOBS, load, Looks(1, SHORT_S, 2.0), at, None)
        assert seen.arrival_rps.tolist() == pytest.approx([live])


def by_the_rule_for_many(seconds):
    return rate([np.mean(seconds[-span * SHORT_S :]) for span in SPANS])


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=60))
def test_of_one_job_it_is_what_the_rule_for_many_says_to_the_last_bit(seconds):
    assert rate_of_seconds(seconds) == by_the_rule_for_many(seconds)


def test_so_it_is_of_loads_that_stay_rise_and_end():
    means = np.full(120, 40.0), np.linspace(40, 200, 120), np.full(60, 3.0), np.zeros(9)
    seconds = _seconds(np.concatenate(means), 2)
    windows = [tuple(seconds[max(end - LONG_S, 0) : end]) for end in range(1, len(seconds) + 1)]
    assert [*map(rate_of_seconds, windows)] == [*map(by_the_rule_for_many, windows)]
