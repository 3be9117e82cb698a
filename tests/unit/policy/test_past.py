import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.received.past import GRAIN_S, KEPT_S, Past, add_interval


def after(rates, begin=0.0, past=None):
    """A second at each rate."""
    past = Past() if past is None else past
    for i, rate in enumerate(rates, start=1):
        past = add_interval(past, begin + i, rate, 1.0)
    return past


def test_nothing_has_no_rate():
    assert math.isnan(Past().rate(10.0, 3.0))


def test_rates_of_long_ago_are_those_that_were():
    past = after([10.0] * 300 + [40.0] * 300)
    assert past.rate(600.0, 3.0) == pytest.approx(40)
    assert past.rate(200.0, 3.0) == pytest.approx(10)
    assert past.rate(302.0, 4.0) == pytest.approx(25)  # half before the change, half after


def test_before_the_first_second_the_load_was_what_it_was_at_first():
    past = after([7.0] * 10 + [70.0] * 50)
    assert past.rate(-900.0, 3.0) == pytest.approx(7)


def test_what_is_kept_is_thin_and_reaches_a_quarter_of_an_hour_back():
    past = after([1.0] * 5000)
    assert len(past.at) <= KEPT_S / GRAIN_S + 3
    assert past.at[0] <= 5000 - KEPT_S <= past.at[1]


def test_a_gap_counts_as_what_comes_after_it_and_an_old_second_not_at_all():
    past = add_interval(after([10.0] * 20), 80.0, 30.0, 1.0)
    assert past.rate(80.0, 60.0) == pytest.approx(30)
    assert add_interval(past, 79.0, 1e6, 1.0) is past


def test_a_clock_that_was_set_back_begins_anew():
    past = after([100.0] * 1000, begin=1e6)
    past = after([500.0] * 600, begin=1e6 - 3600, past=past)
    assert past.rate(1e6 - 3000, 3.0) == pytest.approx(500)
    assert past.rate(1e6 - 3900, 3.0) == pytest.approx(500)


def test_a_first_second_of_no_length_divides_by_nothing():
    assert add_interval(Past(), 1e9, 5.0, 1e-9).rate(1e9, 3.0) >= 0


@given(st.lists(st.floats(0, 1e5), min_size=2, max_size=200))
def test_everything_that_came_is_counted_once(rates):
    past = after(rates)
    assert past.rate(len(rates), len(rates)) * len(rates) == pytest.approx(sum(rates), abs=0.01 * len(rates))
