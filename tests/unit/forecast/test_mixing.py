"""The share of a network follows the newest losses, that of its median squared errors, too; hand-computed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.blend.mixing import empty_mix_state, score_and_mix
from models.forecast.core.forecaster import Task

FORGETS = 0.01
ONE, THREE = (0.5,), (0.1, 0.5, 0.9)


def mixed(pairs, values, lost=False, levels=ONE):
    """Step through (blend, network) forecasts and the values that come before each; returns what is said last."""
    state, out = empty_mix_state(Task(3600.0, 1, levels)), np.empty((1, len(levels)))
    for seen, (pair, value) in enumerate(zip(pairs, values, strict=True), start=1):
        blend, network = (np.atleast_2d(np.asarray(said, dtype=float)) for said in pair)
        score_and_mix(state, np.array(levels), FORGETS, seen, value, lost, blend, network, out)
    return out[0] if len(levels) > 1 else out[0, 0], state


def test_a_network_of_which_nothing_is_known_has_its_prior_share():
    said, state = mixed([(100.0, 200.0)], [math.nan])
    assert said == pytest.approx(0.7 * 100 + 0.3 * 200)
    assert state.shares[0] == pytest.approx(0.3)


def test_the_odds_are_the_ratio_of_the_mean_losses_to_a_power_that_grows_with_their_number():
    # Medians of 100 and 110 were followed by 120: losses 10 and 5. One loss counts with 1/25 of the power 8.
    _, state = mixed([(100.0, 110.0), (100.0, 110.0)], [math.nan, 120.0])
    odds = 3 / 7 * 2 ** (8 / 25)
    assert state.losses[:, 0].tolist() == [10.0, 5.0]
    assert state.shares[0] == pytest.approx(odds / (1 + odds))


@pytest.mark.parametrize(("network", "share"), [(105.0, 1.0), (160.0, 0.0)])
def test_a_better_network_takes_over_and_a_worse_one_is_silenced(network, share):
    said, state = mixed([(120.0, network)] * 60, [math.nan] + [100.0] * 59)
    assert state.shares[0] == pytest.approx(share, abs=0.02)
    assert said == pytest.approx(120 + share * (network - 120), abs=0.3)


def test_where_the_network_is_silent_or_the_blend_lost_the_blend_speaks_alone():
    assert mixed([(120.0, math.nan)] * 5, [100.0] * 5)[0] == 120.0
    said, state = mixed([(120.0, 105.0)] * 60, [100.0] * 60, lost=True)
    assert said == 120.0 and not state.shares.any()
    assert state.counts[0] == 9  # what is known of it counts little, so that newer losses decide


def test_a_network_that_is_right_to_the_last_bit_takes_all():
    assert mixed([(120.0, 100.0)] * 200, [100.0] * 200)[0] == pytest.approx(100.0)


def test_missing_values_score_nobody():
    _, state = mixed([(120.0, 105.0)] * 9, [math.nan] * 9)
    assert not state.counts.any() and not state.losses.any() and not state.squares.any()


def test_the_medians_share_is_at_most_the_one_of_least_squared_error():
    # Blend 100, network 90. Eight values of 92 and one of 130: the network's pinball losses are the lower ones,
    # (8 · 1 + 20) / 9 beside (8 · 4 + 15) / 9. Miss · distance is eight times -8 · -10 and once 30 · -10, distance²
    # always 100: of least squared error is the share (640 - 300) / 900.
    said, state = mixed([(100.0, 90.0)] * 10, [math.nan] + [92.0] * 8 + [130.0])
    assert state.losses[:, 0] == pytest.approx([47 / 9, 28 / 9])
    assert state.squares[:, 0] == pytest.approx([340 / 9, 100.0])
    assert state.shares[0] > 0.5
    assert said == pytest.approx(100 - 10 * 340 / 900)


def test_a_burst_that_the_network_misses_by_more_takes_its_share_of_the_median():
    # Eight times -8 · -10 and once 170 · -10 is below zero: any share would have made the squared error larger.
    said, state = mixed([(100.0, 90.0)] * 10, [math.nan] + [92.0] * 8 + [270.0])
    assert said == 100.0 and state.shares[0] > 0.3


def test_squares_are_forgotten_as_losses_are():
    _, state = mixed([(100.0, 90.0)] * 201, [math.nan] + [80.0] * 200)
    assert state.squares[:, 0] == pytest.approx([200.0, 100.0])
    _, state = mixed([(100.0, 90.0)] * 202, [math.nan] + [80.0] * 200 + [110.0])
    assert state.squares[0, 0] == pytest.approx(200 + FORGETS * (-100 - 200))


def test_the_other_levels_keep_their_share_and_give_way_where_they_would_cross_the_median():
    # Nine values of 75 and one of 500: losses of (9 · 29.5 + 592) / 30 and (9 · 4.5 + 637) / 30, but of least squared
    # error is no share, as 9 · -25 · -30 + 400 · -30 is below zero. The highest level would lie below the median.
    values = [math.nan] + [75.0] * 9 + [500.0]
    said, state = mixed([((90, 100, 110), (60, 70, 80))] * 11, values, levels=THREE)
    odds = 3 / 7 * ((9 * 29.5 + 592) / (9 * 4.5 + 637)) ** (8 * 10 / 34)
    share = odds / (1 + odds)
    assert state.shares[0] == pytest.approx(share) and 110 - 30 * share < 100
    assert said.tolist() == pytest.approx([90 - 30 * share, 100.0, 100.0])


RATES = st.floats(0.0, 1e6)
QUANTILES = st.lists(RATES, min_size=3, max_size=3).map(sorted)
PAIRS = st.tuples(QUANTILES, QUANTILES)


@given(st.lists(st.tuples(PAIRS, st.one_of(RATES, st.just(math.nan))), min_size=1, max_size=8))
def test_what_is_said_rises_and_lies_between_the_two(steps):
    said, _ = mixed([pair for pair, _ in steps], [value for _, value in steps], levels=THREE)
    low, high = (function(np.array(steps[-1][0]), axis=0) for function in (np.min, np.max))
    near = 1e-9 * (1 + high)
    assert (np.diff(said) >= 0).all() and (said >= low - near).all() and (said <= high + near).all()
