import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import Series, SeriesError
from models.forecast.neural import windows
from models.forecast.neural.windows import (
    RECENT,
    STATES,
    PastWindow,
    input_rows,
    season_of,
    training_windows,
)

TASK = Task(14_400.0, 3, (0.5,))  # a day is 6 steps, a week 42
VIEW = PastWindow(TASK, 42)


def squares(steps):
    """A load whose root is 1000 and its own index."""
    return (1000 + np.arange(float(steps))) ** 2


def series(values):
    return Series(0.0, 14_400.0, np.asarray(values, dtype=float))


def test_a_move_leads_from_the_newest_step_to_where_it_says():
    assert VIEW.needs == 42 + 6 + 1
    reading = input_rows(VIEW, squares(60)[None])
    assert reading.rows.shape == (1, 60 - 48, VIEW.width) and VIEW.width == len(VIEW.moves) + STATES
    assert reading.anchor[0].tolist() == list(range(1048, 1060))
    np.testing.assert_allclose(reading.unit[0, 0], 1000 + np.mean([43, 44, 45, 46, 47, 48]))
    steps = dict(zip(VIEW.moves, reading.rows[0, 0] * reading.unit[0, 0], strict=False))
    expected = {(0, -1): -1, (0, -24): -24, (6, -6): -12, (6, 0): -6, (6, 1): -5, (42, 3): -39, (42, -6): -48}
    assert {move: round(float(steps[move]), 3) for move in expected} == expected
    level, calm, restless = reading.rows[0, 0, -STATES:]
    np.testing.assert_allclose(level, 1048 / 1045.5, rtol=1e-6)
    np.testing.assert_allclose([math.exp(calm), math.exp(restless)], [1 / 1045.5, 1.0], rtol=1e-6)


def test_the_newest_moment_alone_is_read_as_the_last_of_many():
    values = np.random.default_rng(1).gamma(4, 20, (1, VIEW.needs + 30))
    whole, alone = input_rows(VIEW, values), input_rows(VIEW, values[:, -VIEW.needs :])
    np.testing.assert_allclose(alone.rows[0, 0], whole.rows[0, -1], rtol=1e-5, atol=1e-6)
    assert alone.unit[0, 0] == pytest.approx(whole.unit[0, -1]) and alone.anchor[0, 0] == whole.anchor[0, -1]


def test_after_a_break_last_week_counts_in_proportion():
    level = np.full(VIEW.needs + 10, 16.0)
    fallen = np.append(level, np.full(7, 1.0))  # the day's root rate falls from 4 to 1
    rows = input_rows(VIEW, fallen[None]).rows[0]
    weekly = [lag == 42 for lag, _ in VIEW.moves]
    np.testing.assert_allclose(rows[-1, : len(weekly)][weekly], 0.0, atol=1e-6)
    calm = np.append(level, np.full(7, 16.0 * 1.4))  # a root 1.18 times as high is no break
    lower = 4 * (1 - 1.4**0.5) / (4 * 1.4**0.5)
    np.testing.assert_allclose(input_rows(VIEW, calm[None]).rows[0, -1, : len(weekly)][weekly], lower, rtol=1e-5)


def test_steps_beyond_a_day_look_back_whole_days():
    view = PastWindow(Task(14_400.0, 8, (0.5,)), 6)
    reading = input_rows(view, squares(view.needs)[None])
    steps = dict(zip(view.moves, reading.rows[0, 0] * reading.unit[0, 0], strict=False))
    assert (round(float(steps[6, 6])), round(float(steps[6, 7])), round(float(steps[6, 10]))) == (0, -5, -2)


def test_a_row_never_sees_beyond_its_moment():
    whole = np.random.default_rng(1).gamma(4.0, 10.0, 80)
    reading, outcomes = training_windows(VIEW, series(whole))
    assert len(outcomes) == reading.rows.shape[1] == 80 - 49 - 3 + 1
    np.testing.assert_allclose(outcomes[5], whole[54:57], rtol=1e-6)
    changed = np.append(whole[:54], whole[54:] * 7)
    np.testing.assert_array_equal(training_windows(VIEW, series(changed))[0].rows[0, :6], reading.rows[0, :6])


def test_reading_at_once_equals_reading_step_by_step():
    whole = np.random.default_rng(2).gamma(2.0, 10.0, 200)
    at_once = input_rows(VIEW, whole[None])
    for moment in (0, 70, 151):
        alone = input_rows(VIEW, whole[None, moment : moment + VIEW.needs])
        np.testing.assert_allclose(alone.rows[0, 0], at_once.rows[0, moment], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(alone.unit[0, 0], at_once.unit[0, moment], rtol=1e-9)


@given(st.floats(1e-2, 1e6), st.integers(0, 1000))
def test_a_row_knows_no_scale_which_its_root_and_unit_have(factor, seed):
    whole = np.random.default_rng(seed).gamma(3.0, 5.0, (2, VIEW.needs))
    plain, scaled = input_rows(VIEW, whole), input_rows(VIEW, whole * factor)
    np.testing.assert_allclose(scaled.rows, plain.rows, rtol=1e-4, atol=1e-5)
    for scale, of_one in ((scaled.anchor, plain.anchor), (scaled.unit, plain.unit)):
        np.testing.assert_allclose(scale, of_one * math.sqrt(factor), rtol=1e-9)


@pytest.mark.parametrize("values", [np.zeros(60), np.full(60, 7.0), np.append(np.zeros(59), 1e9)])
def test_rows_are_finite_whatever_came(values):
    assert np.isfinite(input_rows(VIEW, values[None]).rows).all()


def test_gaps_are_filled_as_inputs_and_missing_as_outcomes():
    holed = series(squares(80))
    holed.values[60] = math.nan
    reading, outcomes = training_windows(VIEW, holed)
    assert np.isfinite(reading.rows).all()
    assert np.isnan(outcomes).sum() == 3


@pytest.mark.parametrize("missing", [1, 45])
def test_a_gap_where_a_long_history_is_cut_is_filled_by_what_lies_before(missing, monkeypatch):
    monkeypatch.setattr(windows, "MOST", 60)
    whole = np.random.default_rng(3).gamma(4.0, 10.0, 200)
    cut = 200 - 60 - VIEW.needs
    whole[cut : cut + missing] = math.nan
    reading, outcomes = training_windows(VIEW, series(whole))
    known = training_windows(VIEW, series(fill_gaps(whole, TASK)))
    assert len(outcomes) == 60 - 3 + 1 and np.isfinite(reading.rows).all()
    for found, expected in zip(reading, known[0], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_leading_gaps_are_no_history_and_a_hole_teaches_nothing():
    led = np.append(np.full(50, math.nan), squares(80))
    assert len(training_windows(VIEW, series(led))[1]) == len(training_windows(VIEW, series(squares(80)))[1])
    holed = squares(300)
    holed[100:200] = math.nan
    outcomes = training_windows(VIEW, series(holed))[1]
    first = 200 - VIEW.needs  # the row whose newest step is the hole's last one
    assert np.isnan(outcomes[first : first + RECENT // 2]).all() and np.isfinite(outcomes[first + RECENT // 2]).all()


def test_too_short_says_what_is_needed():
    with pytest.raises(SeriesError, match=r"51 steps.*needs at least 52"):
        training_windows(VIEW, series(squares(51)))
    assert len(training_windows(VIEW, series(squares(52)))[1]) == 1


def test_the_season_is_a_week_once_there_are_two():
    assert (season_of(TASK, 83), season_of(TASK, 84)) == (6, 42)
