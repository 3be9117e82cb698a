"""The correction in a run's live day: when its backfill is ordered, what is kept of it, and what its failure does."""

import time
from dataclasses import replace

import pytest

from configs.settings import load
from models.backfill.live.known import PUBLISHED_S
from models.backfill.live.ordered import look_again
from pipelines.backfill.asked import RangeError
from pipelines.backfill.follow import FollowedOrder
from pipelines.backfill.ranges import OffsetRange
from pipelines.demo import correction as module
from pipelines.demo import correction_plan
from pipelines.demo.correction import Correction, begin_correction, judge_windows, with_word
from pipelines.demo.correction_plan import deadline, order_at, plan_correction
from pipelines.jobs.truth import Counted
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.kafka.connection import BrokerError
from pipelines.report.recorded.backfill import RecordedBackfill
from tests.fakes import planned_job
from tests.fakes.waiting import wait_until
from tidecast.control import Clock
from tidecast.orders import ReplayProgress

SETTINGS = load(replay={"withheld_share": 0.5})
HOUR = withheld_hour(SETTINGS.replay)
FOUND = OffsetRange({"events": {"0": 10}}, {"events": {"0": 1210}})


def new(said):
    """What is new of an order: a word, or that there was none."""
    return FollowedOrder(said, silent=said is None, note="planned anew" if said and said.done == 300 else "")


def word(state, done, **more):
    now = time.time()
    return ReplayProgress("x", "word_count", now, now, 200.0, state, 1200, done, **more)


@pytest.fixture
def world(monkeypatch):
    """The broker's side of a correction: what was asked of it, and what is answered; the live load began long ago."""

    class World:
        def __init__(self):
            self.since = time.time() - 4000
            began = self.since + 3500
            self.clocks = [Clock(self.since - 5000, 0.0, 200.0), Clock(began, HOUR[0] - 6 * 3600, 200.0)]
            self.words = [
                word("waiting", 0), word("running", 300, rps=20.0), None, word("read", 1200), word("done", 1200),
            ]  # fmt: skip
            self.ranges, self.orders = [], []

        def find_offsets(self, kafka, topic, asked):
            self.ranges.append((topic, *asked))
            return FOUND

    made = World()
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(module, "read_clock", lambda *_: made.clocks.pop(0) if len(made.clocks) > 1 else made.clocks[0])
    monkeypatch.setattr(correction_plan, "find_offsets", lambda *asked: made.find_offsets(*asked))
    monkeypatch.setattr(module, "read_now", lambda settings, job: planned_job.moment(made.clocks[-1]))
    monkeypatch.setattr(module, "send_order", lambda kafka, order: made.orders.append(order))
    monkeypatch.setattr(module, "follow_order", lambda settings, order: map(new, made.words))
    return made


def ended(correction, start=True):
    if start:
        correction.start()
    wait_until(lambda: correction.over, "its end")
    return correction.told


def test_the_hour_is_ordered_once_all_of_it_has_come_and_followed_to_its_end(world):
    correction = Correction(SETTINGS, world.since, HOUR)
    told, clock = ended(correction), world.clocks[-1]
    ((topic, begin, end, slack_s, now, told_in, *_),) = world.ranges
    assert (topic, begin, end, told_in) == ("events", *map(clock.wall_at, HOUR), clock)
    assert slack_s > back_s(SETTINGS.replay) and end + slack_s <= now
    (order,) = world.orders
    assert (order.job, order.wanted, order.records) == ("word_count", "run", 1200)
    assert (order.begin_ms, order.end_ms) == (HOUR[0] * 1000, HOUR[1] * 1000)
    assert (told.state, told.records, told.ordered_at) == ("done", 1200, order.wall_time)
    due_at = told.due_at
    assert due_at == told.planned_at == pytest.approx(clock.wall_start + 24 * 3600 / 200) and told.plan == ""
    assert (order.task_s, order.sure, order.by) == (2.0, 0.9, pytest.approx(clock.at(due_at), abs=1e-3))
    assert order.cost == pytest.approx(18 / (18 + slack_s), abs=1e-3)
    assert [count for _, count in order.schedule] == [7]  # no forecast reaches it: all that start at once
    assert [said["done"] for said in told.progress] == [0, 300, 1200, 1200]
    assert told.begun_at == told.progress[1]["wall_time"] and told.done_at == told.progress[-1]["wall_time"]
    notes = correction.notes()
    assert "ordered" in notes[0] and "with 7 more of its executors: " in notes[0]
    assert any("nothing is heard" in note for note in notes) and any("planned anew" in note for note in notes)
    assert "done" in notes[-1]
    assert correction.notes() == []


def test_a_look_for_the_clock_that_the_broker_does_not_answer_is_one_of_many(world, monkeypatch):
    looks = []

    def read_clock(*_):
        looks.append(1)
        if len(looks) == 1:
            raise BrokerError("the broker does not answer")
        return world.clocks[-1]

    monkeypatch.setattr(module, "read_clock", read_clock)
    told = ended(Correction(SETTINGS, world.since, HOUR))
    assert (told.state, told.reason, len(looks)) == ("done", "", 2)


def test_what_fails_ends_the_correction_alone_and_is_kept(world):
    def refuse(*_):
        raise RangeError("the topic no longer holds it")

    world.find_offsets = refuse
    correction = Correction(SETTINGS, world.since, HOUR)
    told = ended(correction)
    assert told.state == "failed" and "no longer holds" in told.reason
    assert told.ordered_at is told.done_at is None and not world.orders
    assert "no longer holds" in correction.notes()[-1]


def test_a_backfill_that_fails_is_not_done(world):
    world.words = [word("running", 300), word("failed", 300, reason="disk full")]
    told = ended(Correction(SETTINGS, world.since, HOUR))
    assert (told.state, told.reason, told.done_at) == ("failed", "disk full", None)


def test_it_can_be_stopped_while_it_waits(world):
    world.clocks = world.clocks[:1]  # an earlier load's: it does not count
    correction = Correction(SETTINGS, world.since, HOUR)
    correction.start()
    assert not correction.over
    correction.stop()
    told = ended(correction, start=False)
    assert told.state == "not ordered" and not world.ranges


def test_it_is_due_soon_after_the_live_load_and_has_time_enough():
    clock = Clock(1000.0, 0.0, 200.0)
    assert deadline(SETTINGS, clock, 1184.0) == 1000 + 24 * 3600 / 200 + 30
    assert deadline(SETTINGS, clock, 1400.0) == 1490.0
    slow = SETTINGS.replay.model_copy(update={"backfill_after_s": 30.0})
    assert deadline(SETTINGS.model_copy(update={"replay": slow}), clock, 1184.0) == 1000 + 24 * 3600 / 200 + 60


def test_it_is_ordered_once_it_has_come_and_the_served_forecast_reaches_its_deadline():
    reach_s = 10 * 1800 / 200
    assert order_at(SETTINGS, 1184.0, 1432.0) == 1432 - PUBLISHED_S - reach_s == 1312
    assert order_at(SETTINGS, 1400.0, 1490.0) == 1400


def test_what_can_be_planned_is_ordered_with_its_schedule_and_the_time_for_its_publication():
    moment = planned_job.moment()
    order = planned_job.order(by=planned_job.NOW + 3600, sure=0.9)
    made = plan_correction(order, "UTC", planned_job.NOW + 3600, moment)
    assert made.order.schedule and made.order.by == order.by and made.why == ""
    assert "400 k records" in made.sentence and planned_job.NOW < made.done_at <= planned_job.NOW + 3600
    refused = plan_correction(
        order, SETTINGS.replay, planned_job.NOW + 3600, moment._replace(now_s=planned_job.NOW + 3400)
    )
    assert (refused.sentence, refused.done_at) == ("", planned_job.NOW + 3600) and "nothing was heard" in refused.why
    assert [count for _, count in refused.order.schedule] == [7]


@pytest.mark.parametrize(
    ("stated", "count"), [({"start_growth": 1.0}, 1), ({"max_step_up": 2}, 7), ({"start_growth": 0.3}, 7)]
)
def test_where_executors_share_a_computer_one_is_asked_for_if_there_is_no_plan_and_no_more_later(stated, count):
    moment = planned_job.moment()
    planning = planned_job.CONTRACT.planning.model_copy(update=stated)
    contract = planned_job.CONTRACT.model_copy(update={"planning": planning})
    moment = moment._replace(known=replace(moment.known, contract=contract))
    order = planned_job.order(by=planned_job.NOW + 3600, sure=0.9)
    late = plan_correction(order, "UTC", planned_job.NOW + 3600, moment._replace(now_s=planned_job.NOW + 3400))
    assert "nothing was heard" in late.why and [many for _, many in late.order.schedule] == [count]
    # 50 records/s for an hour are less than half of them, whatever there is of executors.
    made = plan_correction(replace(order, most_rps=50.0), "UTC", planned_job.NOW + 3600, moment)
    assert "The earliest" in made.why and [many for _, many in made.order.schedule] == [count]
    looked = look_again(made.order, moment._replace(orders={order.id: made.order}))
    assert not looked.attainable and not looked.changed and set(looked.plan.extra.tolist()) == {count}


def test_nothing_is_corrected_where_nothing_is_withheld():
    assert begin_correction(load(replay={"withheld_share": 0.0}), 0.0) is None


def test_a_backfill_begins_with_the_first_record_that_it_reads():
    told = RecordedBackfill("x", *HOUR, due_at=9.0, planned_at=9.0)
    assert with_word(told, word("waiting", 0)).begun_at is None
    told = with_word(told, word("paused", 7))
    assert told.begun_at is not None and with_word(told, word("running", 8)).begun_at == told.begun_at


def test_windows_are_judged_by_all_records_of_the_day():
    one, two, three = ({"n": n, "seq_sum": 10 * n} for n in (1, 2, 3))
    truth = {"windows": {"live": {"a": one, "b": two}, "corrected": {"b": three, "c": one}}}

    def judged(**windows):
        return judge_windows(truth, Counted(windows))

    assert judged(a=one, b=two) == {"differed": 2, "corrected": 0, "wrong": 2}
    assert judged(a=one, b=three, c=one) == {"differed": 2, "corrected": 2, "wrong": 0}
    assert judged(a=two, b=three) == {"differed": 2, "corrected": 1, "wrong": 2}
    assert judged(a=one, b=three, c=one, d=one) == {"differed": 2, "corrected": 2, "wrong": 1}
    assert judged(a=one, b={"n": 3, "seq_sum": 31}, c=one)["wrong"] == 1
