import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.adapt.drift import QUIET_S, detect_drifts
from models.adapt.surprise import Shift, block_means, error_size, error_surprise, load_surprise
from models.forecast.core.series import Series, SeriesError

DAY_S, STEP_S = 86_400.0, 1800.0
DAY = 48


def week_long(days=21, noise=0.03, seed=0, level=100.0):
    """A load with days, weekends and noise."""
    steps = np.arange(days * DAY)
    weekend = np.where((steps // DAY) % 7 >= 5, 0.6, 1.0)
    values = level * weekend * (1.5 + np.sin(2 * np.pi * steps / DAY))
    return Series(0.0, STEP_S, values * np.exp(noise * np.random.default_rng(seed).standard_normal(len(steps))))


def changed(series, at, factor):
    values = series.values.copy()
    values[at:] *= factor
    return Series(series.start, series.step_s, values)


def test_means_begin_at_multiples_since_the_epoch_and_need_half_their_steps():
    values = np.array([9.0, 1, 2, 3, 4, np.nan, 6, np.nan, np.nan, np.nan, 7, 8, 5])
    means = block_means(Series(3 * STEP_S, STEP_S, values), 4)  # steps 3 … 15, so the first mean begins with step 4
    assert (means.start, means.span_s, means.day) == (4 * STEP_S, 4 * STEP_S, 12)
    np.testing.assert_array_equal(means.values, [2.5, np.nan, 20 / 3])


def test_a_load_surprises_by_its_distance_from_the_range_of_comparable_days():
    days = np.repeat([100.0, 100, 120, 90, 130, 60, 110], 4)  # four means a day
    surprise = load_surprise(block_means(Series(0.0, DAY_S / 4, days), 1))
    offset = 0.02 * np.cumsum(days) / np.arange(1, 29)
    assert np.isnan(surprise[:4]).all()
    assert surprise[4] == 0
    assert surprise[8] == pytest.approx(np.log((120 + offset[8]) / (100 + offset[8])))
    assert surprise[12] == pytest.approx(np.log((90 + offset[12]) / (100 + offset[12])))
    assert surprise[24] == 0  # 110 lies between 60 and 130


def test_the_week_counts_once_it_is_known():
    days = np.repeat([100.0, 100, 100, 100, 100, 40, 40, 100, 70], 4)
    surprise = load_surprise(block_means(Series(0.0, DAY_S / 4, days), 1))
    assert (surprise[28:32] == 0).all()  # a Monday like the last, although the day before was low
    assert (
        surprise[32:] < -0.3
    ).all()  # 70 was the range of the first week's days, but not of yesterday or last Tuesday


def test_error_surprise_is_the_growth_of_the_error():
    errors = np.repeat([0.1, -0.1, -0.4, 0.05], 4)
    size = error_size(Series(0.0, DAY_S / 4, errors), 1)
    np.testing.assert_allclose(error_surprise(size)[4:], np.repeat([0.0, 0.3, 0.0], 4), atol=1e-12)
    known = error_surprise(size, Shift(DAY_S * 2, 0.2))
    np.testing.assert_allclose(known[4:], np.repeat([0.0, 0.1, 0.0], 4), atol=1e-12)


def test_after_a_known_change_the_days_before_it_count_as_they_were_and_moved():
    load = block_means(Series(0.0, DAY_S / 4, np.repeat([100.0, 100, 200, 210, 90], 4)), 1)
    unknown, known = load_surprise(load), load_surprise(load, Shift(2 * DAY_S, np.log(2)))
    assert (unknown[8:12] > 0.6).all() and (known[8:12] == 0).all()
    assert (known[12:16] > 0).all() and (known[12:16] < 0.05).all()  # 210 over 200
    np.testing.assert_array_equal(known[16:], unknown[16:])  # 90 is under 100, as it was


@pytest.mark.parametrize("factor", [1.4, 0.6])
def test_a_lasting_change_is_found_once_and_described(factor):
    at = 16 * DAY + 7
    drifts = detect_drifts(changed(week_long(), at, factor))
    assert len(drifts) == 1
    drift = drifts[0]
    assert drift.kind in ("page_hinkley", "adwin") and drift.signal == "load"
    assert at * STEP_S < drift.found <= (at + 50) * STEP_S
    assert abs(drift.time - at * STEP_S) <= 6 * STEP_S
    assert drift.factor == pytest.approx(factor, rel=0.15)
    assert drift.before == pytest.approx(0, abs=0.05)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.15), st.floats(0.01, 1e6))
def test_a_load_that_stays_as_it_was_is_silent(seed, noise, level):
    assert detect_drifts(week_long(noise=noise, seed=seed, level=level)) == []


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e6))
def test_the_unit_of_the_load_does_not_matter(seed, unit):
    series = changed(week_long(seed=seed), 16 * DAY, 1.5)
    scaled = detect_drifts(Series(0.0, STEP_S, series.values * unit))
    assert [d.found for d in detect_drifts(series)] == [d.found for d in scaled] and scaled


def test_the_same_series_gives_the_same_drifts_and_nothing_looks_ahead():
    series = changed(week_long(), 16 * DAY, 1.5)
    found = detect_drifts(series)
    assert found == detect_drifts(series)
    rewritten = series.values.copy()
    rewritten[round(found[0].found / STEP_S) :] = 1e9
    assert detect_drifts(Series(0.0, STEP_S, rewritten))[0] == found[0]


def test_a_drift_that_is_known_is_not_told_again_but_the_next_one_is():
    series = changed(changed(week_long(), 14 * DAY, 1.5), 17 * DAY, 2.0)
    first, second = detect_drifts(series)
    assert detect_drifts(series, last=first) == [second]
    assert detect_drifts(series, last=second) == []


def test_day_by_day_is_as_at_once():
    series = changed(changed(week_long(days=17), 9 * DAY, 1.5), 14 * DAY, 2.0)
    known = []
    for end in range(DAY, len(series) + 1, DAY):
        known += detect_drifts(Series(0.0, STEP_S, series.values[:end]), known[-1] if known else None)
    first_saturday, *rest = known
    assert first_saturday.time == 5 * DAY_S  # nobody can know that weekends are lower
    assert rest == detect_drifts(series, first_saturday) and len(rest) == 2
    assert all(later.found > earlier.found + QUIET_S for earlier, later in pairwise(known))


def test_a_short_disturbance_is_no_drift():
    values = week_long().values.copy()
    values[16 * DAY : 16 * DAY + 12] *= 3  # two means
    assert detect_drifts(Series(0.0, STEP_S, values)) == []


@pytest.mark.parametrize("steps", [0, 1, 5, 3 * DAY])
def test_too_short_a_load_says_nothing(steps):
    assert detect_drifts(changed(Series(0.0, STEP_S, week_long().values[:steps]), steps // 2, 9.0)) == []


def test_constants_zeros_and_gaps():
    for level in (0.0, 5.0):
        assert detect_drifts(Series(0.0, STEP_S, np.full(21 * DAY, level))) == []
    assert detect_drifts(Series(0.0, STEP_S, np.full(21 * DAY, np.nan))) == []
    gaps = week_long().values.copy()
    gaps[np.random.default_rng(1).random(len(gaps)) < 0.3] = np.nan
    gaps[10 * DAY : 12 * DAY] = np.nan
    assert detect_drifts(Series(0.0, STEP_S, gaps)) == []
    assert len(detect_drifts(changed(Series(0.0, STEP_S, gaps), 16 * DAY, 0.5))) == 1


def test_a_load_that_stops_is_found():
    drifts = detect_drifts(changed(week_long(), 16 * DAY, 0.0))
    assert len(drifts) == 1 and drifts[0].factor < 0.1


def test_forecasts_that_grow_worse_are_found_although_the_load_is_as_ever_and_better_ones_are_not():
    series = week_long()
    errors = 0.05 * np.random.default_rng(2).standard_normal(len(series))
    worse, better = errors.copy(), np.where(np.arange(len(series)) < 16 * DAY, 8.0, 1.0) * errors
    worse[16 * DAY :] *= 8
    drifts = detect_drifts(series, errors=Series(0.0, STEP_S, worse))
    assert [d.signal for d in drifts] == ["forecast_error"]
    assert drifts[0].after == pytest.approx(0.32 - 0.04, abs=0.12)
    assert detect_drifts(series, errors=Series(0.0, STEP_S, better)) == []


def test_a_drift_is_plain_data():
    drift = detect_drifts(changed(week_long(), 16 * DAY, 1.5))[0]
    assert type(drift)(**json.loads(json.dumps(asdict(drift)))) == drift


def test_what_is_refused():
    series = week_long()
    with pytest.raises(SeriesError, match="one error per step"):
        detect_drifts(series, errors=Series(STEP_S, STEP_S, series.values))
