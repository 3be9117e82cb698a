"""Forecasts off the topic: the outlook from now on, what came of past ones, and which of them count."""

from dataclasses import replace

import numpy as np
import pytest

from models.backfill.live.issued import learn_errors, read_issued
from tests.fakes.planned_job import NOW, STEP_S, STEPS, forecast, live_rps
from tidecast.control import WALL, Clock

NEWEST = NOW - 200


def issued(past=40, clock=WALL, **fields):
    return read_issued([vars(forecast(NEWEST - n * STEP_S, clock, **fields)) for n in range(past)], clock)


def test_the_outlook_is_the_newest_forecast_moved_to_the_rate_of_now():
    found = issued()
    near = found.outlook(NOW, live_rps(NOW), 12, 300.0)
    middles = NOW + (np.arange(12) + 0.5) * 300
    assert near.median == pytest.approx([live_rps(at) for at in middles], rel=0.01)
    assert (np.diff(near.quantiles, axis=1) >= 0).all()
    higher = found.outlook(NOW, 1.3 * live_rps(NOW), 12, 300.0)
    ratio = higher.median / near.median
    assert ratio[0] > 1.15 and ratio[-1] == pytest.approx(1.0, abs=0.02)
    assert found.reaches_s == NEWEST + STEPS * STEP_S


def test_beyond_its_end_the_load_stays_as_it_was_forecast_last():
    far = issued().outlook(NOW, live_rps(NOW), 30, STEP_S)
    assert far.median[13:] == pytest.approx(far.median[13])


def test_past_forecasts_tell_how_they_erred_and_a_short_past_tells_nothing():
    joint, headroom = issued().errors(6, STEP_S, 0.9)
    assert np.abs(joint.mean).max() < 0.5  # they were right
    assert headroom == pytest.approx(1.1, abs=0.03)
    low = issued(last_rps=None)
    low = replace(low, last=1.05 * np.array([live_rps(at - STEP_S / 2) for at in low.times_s]))
    assert low.errors(6, STEP_S, 0.9)[0].mean[2:].min() > 0.2  # more came than was forecast
    joint, headroom = issued(past=4).errors(6, STEP_S, 0.9)
    assert headroom == 1.1 and not joint.mean.any()


def test_beside_a_load_with_bursts_no_more_is_free_in_sum_than_was_held():
    """Nine times of ten twice as much was held as came, and then a burst: by the usual ratio half is always free."""
    came = np.full((20, 2), 100.0)
    came[::10] = 1000.0
    came[3] = np.nan
    said = np.full((20, 2, 3), 200.0)
    _, headroom = learn_errors(said, came, (0.1, 0.5, 0.9), 20.0, 0.9)
    known = np.isfinite(came[:, 0])
    assert headroom == pytest.approx(19 * 200 / came[known, 0].sum())
    assert learn_errors(said / 4, came, (0.1, 0.5, 0.9), 20.0, 0.9)[1] == 1.0, "never less than comes"
    assert learn_errors(said, np.full_like(came, np.nan), (0.1, 0.5, 0.9), 20.0, 0.9)[1] == 1.1, "nothing is known"


def test_what_came_has_holes_where_no_forecast_told_it():
    some = [forecast(NEWEST - n * STEP_S) for n in (0, 1, 3, 4)]
    found = read_issued(map(vars, some), WALL)
    assert np.isnan(found.came).tolist() == [False, False, True, False, False]
    assert found.came[-1] == live_rps(NEWEST - STEP_S / 2)


def test_of_two_at_one_time_the_newer_counts_and_another_clocks_do_not():
    base = forecast(NEWEST)
    again = replace(base, wall_time=base.wall_time + 5, last_rps=7.0)
    found = read_issued(map(vars, [again, base]), WALL)
    assert found.last.tolist() == [7.0]
    stale = replace(base, wall_time=base.wall_time + 3 * STEP_S)  # an earlier replay came by this time, too
    other_step = forecast(NEWEST - STEP_S, step_s=300.0)
    assert read_issued(map(vars, [base, other_step]), WALL).times_s.tolist() == [NEWEST]
    assert read_issued([vars(stale)], WALL) is None and read_issued([], WALL) is None


@pytest.mark.parametrize("clock", [WALL, Clock(NOW - 1000, 1.4e9, 200.0)])
def test_a_forecast_of_the_year_1970_is_left_out_where_there_are_newer_ones(clock):
    epoch = replace(forecast(NEWEST, clock), time=0.0, wall_time=clock.wall_at(0.0) + 1.0)
    found = read_issued([vars(epoch), vars(forecast(NEWEST, clock)), vars(forecast(NEWEST - STEP_S, clock))], clock)
    assert len(found.times_s) == len(found.came) == 2


def test_in_a_replayed_trace_all_is_on_the_walls_clock():
    clock = Clock(NOW - 1000, 1.4e9, 200.0)
    found = issued(clock=clock)
    assert found.step_s == pytest.approx(STEP_S) and found.times_s[-1] == pytest.approx(NEWEST, abs=1e-3)
    assert found.outlook(NOW, live_rps(NOW), 6, STEP_S).median[0] == pytest.approx(live_rps(NOW + 300), rel=0.02)
    assert read_issued([vars(forecast(NEWEST, clock))], WALL) is None
