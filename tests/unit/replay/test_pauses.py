"""Between live batches: when a replay's batch may begin."""

from tidecast.replay.pace import Pace, rows_per_batch, rows_per_task
from tidecast.replay.pauses import LivePauses


class Live:
    """A live query on a clock that the test moves: busy for a part of each period."""

    def __init__(self, busy_s, period_s):
        self.now, self.busy_s, self.period_s = 0.0, busy_s, period_s

    @property
    def status(self):
        return {"isTriggerActive": self.now % self.period_s < self.busy_s}


def opened(live, until_s, every_s=0.25, pauses=None):
    """Times at which a batch might have begun."""
    pauses, found = pauses or LivePauses(live, lambda: live.now), []
    while live.now < until_s:
        if pauses.may_begin():
            found.append(live.now)
        live.now += every_s
    return found


def test_a_batch_begins_early_in_a_pause():
    found = opened(Live(busy_s=1.2, period_s=2.0), 30.0)
    settled = [now % 2.0 for now in found if now > 2.0]
    assert settled and all(1.2 <= at <= 1.7 for at in settled)
    assert len({int(now // 2) for now in found if now > 2.0}) == 14


def test_where_live_batches_leave_no_pause_none_is_told():
    assert opened(Live(busy_s=2.0, period_s=2.0), 20.0) == []


def test_where_nothing_comes_live_it_may_begin_at_any_time():
    live = Live(busy_s=1.0, period_s=2.0)
    pauses = LivePauses(live, lambda: live.now)
    opened(live, 10.0, pauses=pauses)
    live.busy_s = 0.0
    found = opened(live, 40.0, pauses=pauses)
    assert len([now for now in found if now > 14.0]) == 4 * 26 - 1


def test_of_the_time_in_which_nobody_asked_no_pause_is_learned():
    """An hour without a replay, in which many live batches ran, is no pause of an hour."""
    live = Live(busy_s=1.2, period_s=2.0)
    pauses = LivePauses(live, lambda: live.now)
    opened(live, 21.5, pauses=pauses)  # the last look is in a pause
    live.now = 3_600.0
    found = opened(live, 3_620.0, pauses=pauses)
    assert found and all(1.2 <= now % 2.0 <= 1.7 for now in found)


def test_without_a_live_query_there_is_nothing_to_wait_for():
    assert LivePauses(None).may_begin()


def test_more_records_are_more_tasks_only_where_the_plan_lets_them_be():
    split, coalesced = Pace(96, 0.2, tasks=16), Pace(96, 0.2, tasks=2)
    assert split.was_split(8) and not coalesced.was_split(8) and not split.was_split(None)
    compacted = Pace(10, 0.2, tasks=2, span=96)  # a record in ten offsets, of which a task has 8 at most
    assert not compacted.was_split(8) and compacted._replace(tasks=12).was_split(8)
    assert rows_per_task(0.2, 0.02) == 10 and rows_per_task(0.2, None) is None and rows_per_task(0.01, 0.02) == 4
    grown = [rows_per_batch(1_000, one, 0.2, 8, split=one.was_split(8)) for one in (split, coalesced)]
    assert grown == [4 * 96, 96]
    assert rows_per_batch(1_000, split._replace(task_s=0.6), 0.2, 8, split=True) == 32
