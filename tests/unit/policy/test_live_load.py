"""What live records a replay has to expect: steady in noise, quick where the load has risen, and as forecast."""

import pytest

from models.policy.received.outlook import Outlook
from models.policy.replays.live_load import Arrived, highest_ahead, highest_within


def after(*rates):
    arrived = Arrived()
    for rate in rates:
        arrived = arrived.then(rate)
    return arrived


def test_noise_is_evened_out_over_an_interval():
    arrived = after(71.0, 79.0, 75.0)
    assert arrived == (75.0, 3)
    assert arrived.steady_rps(84.9) == 75.0  # two deviations of a mean of three seconds are 10
    assert arrived.steady_rps(60.0) == 75.0


def test_more_than_noise_above_the_mean_counts_at_once():
    assert after(71.0, 79.0, 75.0).steady_rps(85.1) == 85.1
    assert after(0.0, 0.0).steady_rps(0.1) == 0.1
    assert Arrived().steady_rps(40.0) == 40.0


@pytest.mark.parametrize(("within_s", "most"), [(0.0, 9.0), (10.0, 9.0), (11.0, 30.0), (100.0, 30.0)])
def test_the_most_of_the_next_seconds_is_that_of_the_steps_they_reach_into(within_s, most):
    ahead = Outlook(levels=(0.5, 0.9), offsets_s=(10.0, 20.0, 30.0), rps=((5.0, 9.0), (20.0, 30.0), (1.0, 2.0)))
    assert highest_ahead(ahead) == [9.0, 30.0, 2.0]
    assert highest_within(ahead, within_s) == most


def test_without_a_forecast_nothing_is_expected():
    assert highest_ahead(None) == [] and highest_within(None, 10.0) is None
