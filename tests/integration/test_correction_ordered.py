"""A live day's correction on a real broker, whose records are stamped by hand and whose job is played by the test."""

import time

import pytest

from configs.settings import load
from pipelines.backfill.orders import read_orders
from pipelines.demo.correction import Correction
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.kafka.publisher import Publisher
from tests.fakes.waiting import wait_until
from tidecast.messages import Control
from tidecast.orders import ReplayProgress

pytestmark = pytest.mark.integration
JOB = "word_count"


def test_the_order_spans_what_was_withheld_and_is_followed_until_it_is_done(empty_topics):
    settings = load(kafka=empty_topics.model_dump(), replay={"withheld_share": 0.2})
    hour, speed, began = withheld_hour(settings.replay), settings.replay.speed, time.time() - 400
    trace_start = hour[0] - 6 * 3600
    begin, end = (began + (moment - trace_start) / speed for moment in hour)
    publisher = Publisher(settings.kafka)
    stamps = [began, begin - 1, begin, end - 1, end + back_s(settings.replay) - 0.1, time.time()]
    for stamp in stamps:
        publisher.send_bytes("events", b"k", b"{}", partition=1, timestamp_s=stamp)
    clock = Control(JOB, time.time(), wall_start=began, trace_start=trace_start, time_scale=speed)
    publisher.send("control", f"{JOB}:clock", clock)
    publisher.flush()
    correction = Correction(settings, began - 1, hour)
    correction.start()
    wait_until(lambda: correction.told.ordered_at is not None or correction.over, "the backfill is ordered")
    assert correction.told.reason == ""
    (order,) = read_orders(settings.kafka, JOB).values()
    name = settings.kafka.topic("events")
    assert (order.first[name, 1], order.past[name, 1]) == (2, 5)
    assert order.records == correction.told.records == 3
    for state, done in (("running", 1), ("read", 3), ("done", 3)):
        now = time.time()
        publisher.send("replays", JOB, ReplayProgress(order.id, JOB, now, now, speed, state, 3, done))
    publisher.close()
    wait_until(lambda: correction.over, "the correction is over")
    assert (correction.told.state, correction.told.begun_at is None) == ("done", False)
    assert correction.told.done_at == correction.told.progress[-1]["wall_time"]
