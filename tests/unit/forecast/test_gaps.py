"""Each figure was worked out by hand from the rule: up to 24 missing windows are stepped over, more begin anew."""

import math

import numpy as np
import pytest

from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.gaps import LONGEST_GAP, WARM_UP, Streak, silence_reason, starts_over, streak_after
from models.forecast.core.series import SeriesError

NAN = math.nan


def come(*missing, streak=None):
    """The streak after samples before each of which so many windows are missing."""
    for many in missing:
        streak = streak_after(streak, many)
    return streak


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        pytest.param([0], Streak(0, 1, True), id="the first sample begins the row"),
        pytest.param([0] * 23, Streak(0, 23, True), id="23 in a row are too few"),
        pytest.param([0] * 24, Streak(0, 24, False), id="the 24th may speak"),
        pytest.param([0] * 24 + [3], Streak(3, 1, False), id="3 missing: stepped over, since_gap 0"),
        pytest.param([0] * 24 + [24], Streak(24, 1, False), id="24 missing are stepped over still"),
        pytest.param([0] * 24 + [25], Streak(0, 1, True), id="25 missing begin anew"),
        pytest.param([0] * 24 + [25] + [0] * 23, Streak(0, 24, False), id="and 24 in a row later it speaks again"),
        pytest.param([0] * 20 + [1] + [0] * 22, Streak(1, 23, True), id="a gap while warming: the row begins again"),
        pytest.param([0] * 20 + [1] + [0] * 23, Streak(1, 24, False), id="and is full 24 samples after the gap"),
        pytest.param([0] * 24 + [5, 0, 0, 0, 2], Streak(2, 1, False), id="the newest gap counts, not their sum"),
        pytest.param([0] * 24 + [5, 0, 2], Streak(5, 1, False), id="or a longer one that is still doubted"),
        pytest.param([0] * 24 + [5, 0, 7], Streak(7, 1, False), id="or the longer of the two"),
    ],
)
def test_by_hand(missing, expected):
    assert come(*missing) == expected


def test_a_reset_is_asked_for_where_nothing_can_be_stepped_on():
    settled = come(*[0] * WARM_UP)
    assert [starts_over(settled, many) for many in (0, 1, LONGEST_GAP, LONGEST_GAP + 1)] == [False, False, False, True]
    assert starts_over(None, 0)


def test_what_follows_a_gap_of_more_than_three_is_doubted():
    settled = come(*[0] * WARM_UP)
    short, long = come(3, streak=settled), come(4, streak=settled)
    assert not short.doubted and long.doubted
    assert come(1, streak=long).doubted and come(0, 2, streak=long).doubted  # a short gap ends no doubt
    # since_gap is 0 at the sample that ends the gap, then 1, 2, 3: from 3 on it is believed
    assert [come(*[0] * more, streak=long).doubted for more in (1, 2, 3)] == [True, True, False]


def test_why_nothing_is_said():
    settled, sound = come(*[0] * WARM_UP), np.ones((2, 3))
    broken = np.array([[1.0, NAN, 2.0]])
    assert silence_reason(settled, sound) == silence_reason(come(3, streak=settled), sound) == ""
    assert silence_reason(come(4, streak=settled), sound) == "doubted"
    assert silence_reason(come(0), sound) == silence_reason(None, sound) == "warming"
    assert silence_reason(settled, broken) == silence_reason(settled, np.array([[math.inf]])) == "model_error"


def test_a_sample_that_is_no_newer_is_refused():
    with pytest.raises(SeriesError, match=r"missing=-1.*stale"):
        streak_after(come(0), -1)


HOURS = Task(3600.0, 1, (0.5,))


def weeks_of_noise(weeks):
    """Half of the load at the weekend, a third of it at night."""
    hours = np.arange(weeks * 168)
    shape = np.where(hours % 24 < 8, 1 / 3, 1.0) * np.where(hours // 24 % 7 >= 5, 0.5, 1.0)
    return 90 * shape * np.random.default_rng(1).gamma(400, 1 / 400, len(hours))


@pytest.mark.parametrize("since", [24, 36, 72, 120, *range(164, 173), 336])
@pytest.mark.parametrize("factor", [1 / 3, 0.6, 1.7, 5.0])
def test_a_gap_is_filled_at_the_level_that_the_load_has_changed_to(factor, since):
    values = weeks_of_noise(4)[: 400 + since + 1]
    values[400:] *= factor
    known, values[-1] = values[-1], math.nan
    assert fill_gaps(values, HOURS)[-1] == pytest.approx(known, rel=0.25)


@pytest.mark.parametrize(
    ("first", "lost"),
    [
        pytest.param(568, 1, id="a week after the change"),
        pytest.param(736, 1, id="two weeks after it"),
        pytest.param(560, LONGEST_GAP, id="over the hour of the change a week later"),
        pytest.param(472, 336, id="two weeks from three days after it on"),
        pytest.param(472, 1344, id="eight weeks"),
    ],
)
@pytest.mark.parametrize("factor", [1 / 3, 0.6, 1.7, 3.0, 9.0])
def test_a_change_is_counted_once_however_long_the_gap(factor, first, lost):
    values = np.repeat([1.0, factor], [400, first + lost - 400 + 168])
    values[first : first + lost] = math.nan
    assert fill_gaps(values, HOURS)[400:] == pytest.approx(factor)


def test_a_fill_is_of_the_usual_level_a_week_after_a_holiday():
    values = np.append(np.ones(24 * 16), math.nan)
    values[8 * 24 : 9 * 24] = 0.5
    assert fill_gaps(values, HOURS)[-1] == 1.0


@pytest.mark.parametrize("factor", [1 / 3, 3.0])
def test_in_each_week_of_a_long_gap_fills_stay_between_the_levels_before_and_after_the_change(factor):
    usual = weeks_of_noise(12)
    values = np.append(usual[:400], usual[400:] * factor)
    values[472:-24] = math.nan
    moved = np.log(fill_gaps(values, HOURS) / usual)[472:] / math.log(factor)
    assert moved.min() > -0.3 and moved.max() < 1.3
    weeks = moved[:1344].reshape(8, 168).mean(axis=1)
    assert weeks == pytest.approx(weeks[0], abs=0.05) and weeks[0] > 0.6


@pytest.mark.parametrize(
    "change",
    [
        lambda hours: np.where(hours % 24 < 12, 3.0, 1.0),
        lambda hours: np.where(hours % 24 == 5, 40.0, 1.0),
        lambda hours: np.full(len(hours), 1.15),
        lambda hours: np.where(hours % 24 < 4, 0.0, 0.3),
    ],
    ids=["by day alone", "a spike", "a little", "idle at night"],
)
def test_a_day_unlike_that_of_a_week_ago_in_a_part_of_it_changes_no_fill(change):
    values = np.append(weeks_of_noise(2), math.nan)
    values[-25:-1] *= change(np.arange(24))
    assert fill_gaps(values, HOURS)[-1] == values[-169]


def test_a_level_is_compared_where_two_days_are_known_and_cut():
    values = np.append(np.repeat([1.0, 50.0], [168, 24]), math.nan)
    assert fill_gaps(values, HOURS)[-1] == 10.0
    assert fill_gaps(1 / values, HOURS)[-1] == pytest.approx(0.1)
    assert fill_gaps(values[1:], HOURS)[-1] == 1.0
    assert fill_gaps(np.append(np.full(10, math.nan), values[10:]), HOURS)[-1] == 1.0
    values[:168] = 0.0
    assert fill_gaps(values, HOURS)[-1] == 0.0
    days = np.append(np.repeat([5.0, 1.0], [7, 1]), math.nan)
    assert fill_gaps(days, Task(86_400.0, 1, (0.5,)))[-1] == pytest.approx(1.0)
