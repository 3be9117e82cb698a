"""An hour of which a source sent a part too late: which hour, which records, and when they come."""

import numpy as np
import pytest

from configs.sections import Replay
from pipelines.jobs.replay import plan_replay
from pipelines.jobs.windows import WINDOW_MS, watermark_delay_ms
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.traces.trace import Trace

START = 1_413_950_400.0  # 2014-10-22T04:00:00Z
HOUR = (START + 2 * 3600, START + 3 * 3600)


def flat_trace(hours=24):
    times = START + 1800.0 * np.arange(2 * hours)
    end = START + 3600.0 * hours
    return Trace("flat", times, np.full(2 * hours, 50.0), 1800.0, START, START, end, 1.0, ())


def plan_of(**changes):
    replay = Replay(**{"withheld_share": 0.1, "burst_share": 0.0, **changes})
    return replay, plan_replay(flat_trace(), replay)


def test_nothing_is_withheld_unless_it_is_asked_for():
    assert withheld_hour(Replay()) is None
    _, plan = plan_of(withheld_share=0.0)
    assert not plan.withheld.any()


def test_it_is_the_first_whole_hour_two_hours_after_the_day_has_begun():
    assert withheld_hour(Replay(withheld_share=0.1)) == HOUR
    later = withheld_hour(Replay(withheld_share=0.1, live_start="2014-10-22T04:30:00"))
    assert later == (START + 3 * 3600, START + 4 * 3600)
    east = withheld_hour(Replay(withheld_share=0.1, live_start="2014-10-22T06:00:00", timezone="Europe/Berlin"))
    assert east == HOUR


def test_a_record_comes_back_once_its_window_is_final_by_hand():
    replay = Replay()  # 3 s late at most, 200 trace seconds a second
    assert watermark_delay_ms(replay) == (3 + 30) * 200 * 1000
    assert back_s(replay) == 600 / 200 + 33 + 20


def test_a_share_of_the_hours_records_comes_later_by_that_and_no_other():
    replay, plan = plan_of()
    at = START + plan.event_at * replay.speed
    inside = (at >= HOUR[0]) & (at < HOUR[1])
    assert inside.sum() == pytest.approx(900, abs=2)  # 50 records/s for 18 s
    assert plan.withheld.sum() == round(0.1 * inside.sum())
    assert not (plan.withheld & ~inside).any()
    assert plan.send_at[plan.withheld] - plan.event_at[plan.withheld] == pytest.approx(back_s(replay))
    assert np.all(np.diff(plan.send_at) >= 0) and plan.send_at[-1] <= plan.seconds + replay.late_s


def test_each_comes_when_the_watermark_has_passed_its_window_by_two_full_batches_of_the_main_job():
    replay, plan = plan_of()
    known = np.maximum.accumulate(np.where(plan.withheld, 0.0, START + plan.event_at * replay.speed))
    for i in np.flatnonzero(plan.withheld):
        end = (START + plan.event_at[i] * replay.speed) * 1000 // WINDOW_MS * WINDOW_MS + WINDOW_MS
        before = int(np.searchsorted(known * 1000 - watermark_delay_ms(replay), end, side="right"))
        assert i - before >= 2 * 450


def test_ordinary_disorder_stays_far_within_the_delay():
    replay, plan = plan_of(withheld_share=0.0, late_share=0.3)
    at = plan.event_at * replay.speed
    behind = np.maximum.accumulate(at) - at
    assert 0 < behind.max() <= replay.late_s * replay.speed < watermark_delay_ms(replay) / 1000


def test_what_is_withheld_is_drawn_from_the_seed_and_changes_nothing_else():
    (_, plan), (_, again), (_, other) = plan_of(), plan_of(), plan_of(seed=8)
    assert np.array_equal(plan.send_at, again.send_at) and np.array_equal(plan.withheld, again.withheld)
    _, without = plan_of(withheld_share=0.0)
    rows, plain = np.argsort(plan.seq), np.argsort(without.seq)
    assert np.array_equal(plan.event_at[rows], without.event_at[plain])
    assert np.array_equal(plan.key[rows], without.key[plain])
    kept = ~plan.withheld[rows]
    assert np.array_equal(plan.send_at[rows][kept], without.send_at[plain][kept])
    assert set(plan.seq[plan.withheld]) != set(other.seq[other.withheld])


def test_a_day_too_short_for_it_withholds_nothing():
    assert withheld_hour(Replay(withheld_share=0.1, live_hours=8, speed=720)) is None
