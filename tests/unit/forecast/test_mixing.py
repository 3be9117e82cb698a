"""The share of a network follows the newest pinball losses; hand-computed."""

import math

import numpy as np
import pytest

from models.forecast.blend.mixing import empty_mix_state, score_and_mix
from models.forecast.core.forecaster import Task

TASK = Task(3600.0, 1, (0.5,))
LEVELS = np.array(TASK.levels)


def mixed(pairs, values, lost=False, task=TASK):
    """Step through (blend, network) forecasts and the values that come before each; returns what is said last."""
    state, out = empty_mix_state(task), np.empty((1, 1))
    for seen, ((blend, network), value) in enumerate(zip(pairs, values, strict=True), start=1):
        score_and_mix(state, LEVELS, 0.01, seen, value, lost, np.full((1, 1), blend), np.full((1, 1), network), out)
    return out[0, 0], state


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
    assert said == pytest.approx(120 + state.shares[0] * (network - 120))


def test_where_the_network_is_silent_or_the_blend_lost_the_blend_speaks_alone():
    assert mixed([(120.0, math.nan)] * 5, [100.0] * 5)[0] == 120.0
    said, state = mixed([(120.0, 105.0)] * 60, [100.0] * 60, lost=True)
    assert said == 120.0 and not state.shares.any()
    assert state.counts[0] == 9  # what is known of it counts little, so that newer losses decide


def test_a_network_that_is_right_to_the_last_bit_takes_all():
    assert mixed([(120.0, 100.0)] * 200, [100.0] * 200)[0] == pytest.approx(100.0)


def test_missing_values_score_nobody():
    _, state = mixed([(120.0, 105.0)] * 9, [math.nan] * 9)
    assert not state.counts.any() and not state.losses.any()
