"""Pausing, resuming, cancelling; deadlines as instants; a plan in a sentence."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from models.backfill.deadline import read_deadline
from models.backfill.finish import FinishTimes
from models.backfill.given import BackfillPlanError, ReplayWork
from models.backfill.plan import BackfillPlan
from models.backfill.search import WeighedSchedule
from models.backfill.standing import BackfillState, StandingBackfill
from models.backfill.text import format_records, plan_sentence

MIDNIGHT = datetime(2026, 3, 8, 23, 0, tzinfo=UTC).timestamp()  # 00:00 in Berlin


def made(records=41.2e6, live=None, rates=None, finish=(1.0, 2.0), by_s=7 * 3600.0, **more):
    steps = 16
    live = np.r_[np.full(2, 900.0), np.full(9, 300.0), np.full(5, 900.0)] if live is None else live
    rates = np.r_[0, 0, np.full(9, 1000.0), np.full(5, 800.0)] if rates is None else rates
    schedule = WeighedSchedule(np.ones(steps, int), 0.93, 6.1, 1.0)
    times = FinishTimes(np.repeat(finish, [90, 10]) * 3600.0)
    return BackfillPlan(
        ReplayWork(records), by_s, 0.9, schedule, times, rates, live, np.ones(steps), 1800.0, 14.3, **more
    )  # fmt: skip


def test_a_plan_is_told_in_a_sentence():
    plan = made(finish=(5 + 52 / 60, 7.0))
    assert plan_sentence(plan, MIDNIGHT, "Europe/Berlin") == (
        "41.2 M records; into the valley from 01:00 to 05:30 and beside the morning; done by 05:52 (90 %), "
        "07:00 with 99 %; live promise kept; 6.1 executor-hours more (at once: 14.3)"
    )


def test_a_level_load_has_no_valley_and_an_endless_finish_no_time():
    plan = made(live=np.full(16, 500.0), rates=np.full(16, 100.0), finish=(7.5, np.inf), live_risk=0.2)
    said = plan_sentence(plan, MIDNIGHT, "UTC")
    assert "from 23:00 to 06:30; done by 06:30 (90 %), an unknown time with 99 %" in said
    assert "live records alone are more than all executors serve with 20 %" in said


def test_a_finish_on_another_day_says_so():
    steps = made(finish=(30.0, 50.0), rates=np.ones(16), live=np.ones(16))
    assert "done by 06:00 (+1 d) (90 %), 02:00 (+2 d) with 99 %" in plan_sentence(steps, MIDNIGHT, "Europe/Berlin")


@pytest.mark.parametrize(
    ("records", "text"),
    [(0, "0"), (950, "950"), (12_345, "12.3 k"), (41.2e6, "41.2 M"), (999_999, "1.00 M"),
     (1.2e9, "1.20 G"), (412e6, "412 M")],
)  # fmt: skip
def test_records_have_three_digits(records, text):
    assert format_records(records) == text


def at(text, zone, year=2026, month=3, day=28, hour=12, minute=0):
    now = datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()
    return read_deadline(text, now, zone)


def test_a_time_of_day_is_the_next_one():
    assert at("07:00", "Europe/Berlin", day=10).epoch_s == datetime(2026, 3, 11, 6, 0, tzinfo=UTC).timestamp()
    assert at("23:00", "Europe/Berlin", day=10).epoch_s == datetime(2026, 3, 10, 22, 0, tzinfo=UTC).timestamp()
    assert at("13:00", "Europe/Berlin", day=10).epoch_s == datetime(2026, 3, 11, 12, 0, tzinfo=UTC).timestamp(), "now"
    # Between the two days the clock jumps: the next 07:00 is 17 hours away, not 18.
    assert at("07:00", "Europe/Berlin").epoch_s == datetime(2026, 3, 29, 5, 0, tzinfo=UTC).timestamp()


def test_a_time_that_the_clock_skips_means_the_jump():
    found = at("02:30", "Europe/Berlin")
    assert found.epoch_s == datetime(2026, 3, 29, 1, 0, tzinfo=UTC).timestamp()
    assert found.remark == "02:30 is skipped in Europe/Berlin: 03:00 CEST is meant"


def test_a_time_that_comes_twice_means_the_first():
    found = at("2026-10-25 02:30", "Europe/Berlin")
    assert found.epoch_s == datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    assert found.remark == "02:30 comes twice in Europe/Berlin: the first is meant"
    assert at("2026-10-25T02:30+01:00", "Europe/Berlin").epoch_s == found.epoch_s + 3600
    assert at("2026-10-25 04:30", "Europe/Berlin").remark == ""


def test_between_the_two_a_clock_time_that_comes_twice_means_the_second_not_tomorrow():
    now = datetime(2026, 10, 25, 0, 45, tzinfo=UTC).timestamp()  # 02:45, the first time
    assert read_deadline("02:30", now, "Europe/Berlin").epoch_s == datetime(2026, 10, 25, 1, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "zone"),
    [("7 o'clock", "UTC"), ("25:00", "UTC"), ("07:00", "Mars/Base"), ("2026-03-27 07:00", "UTC"), ("", "UTC")],
)
def test_what_is_no_deadline_is_refused(text, zone):
    with pytest.raises(BackfillPlanError):
        at(text, zone)


def test_states_follow_each_other():
    begun = StandingBackfill("orders", made(records=100), 100.0)
    assert begun.extra_now == 1
    half = begun.advanced(40)
    assert half.left == 60
    waits = half.paused()
    assert waits.extra_now == 0 and waits.left == 60
    with pytest.raises(BackfillPlanError, match="while paused"):
        waits.advanced(1)
    with pytest.raises(BackfillPlanError, match="60 records are left"):
        waits.resumed(made(records=100))
    runs = waits.resumed(made(records=60))
    assert runs.state is BackfillState.RUNNING
    done = runs.advanced(60)
    assert done.state is BackfillState.DONE and done.extra_now == 0
    gone = half.cancelled()
    for over in (done, gone):
        for change in (over.paused, over.cancelled, lambda over=over: over.resumed(made(records=over.left))):
            with pytest.raises(BackfillPlanError, match="final"):
                change()
    with pytest.raises(BackfillPlanError):
        begun.advanced(-1)
    assert replace(begun, weight=2.0).weight == 2
