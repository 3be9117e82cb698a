"""A backfill by a deadline on a real broker: planned from the job's topics, ordered, followed and planned anew."""

import time
from dataclasses import replace

import pytest

from configs.settings import load
from pipelines.backfill import follow
from pipelines.backfill.ordering import AskedRange, make_order, plan_by, publish_order
from pipelines.backfill.orders import OrderError, read_orders, send_order
from pipelines.kafka.publisher import Publisher
from tests.fakes.planned_job import LEVELS
from tidecast.messages import Forecast, MetricSample
from tidecast.orders import LATER_S, ReplayOrder, ReplayProgress

pytestmark = pytest.mark.integration

STEP_S = 600.0
CONTRACT = """
job: orders
latency_target_s: 10
executors: {min: 1, max: 8, cores: 1}
planning: {overhead_s: 0.5, per_record_s: 0.01, lead_s: 20, metrics_age_s: 900}
"""


@pytest.fixture
def settings(empty_topics, tmp_path):
    (tmp_path / "orders.yaml").write_text(CONTRACT)
    return load(kafka=empty_topics.model_dump(), contracts=tmp_path, var=tmp_path)


class Saying:
    """A job whose agent and forecaster say what they are told to."""

    def __init__(self, kafka):
        self.publisher = Publisher(kafka)

    def learned(self):
        """Batches that take as long as they should."""
        now = time.time()
        self.send("metrics", MetricSample("orders", "interval", now - 96, now - 95, arrival_rps=150.0, executors=3,
                                          task_ceiling=60, mode="act"))  # fmt: skip
        for n in range(40):
            self.send("metrics", MetricSample("orders", "batch", now - 90 + n, now - 90 + n, batch_id=n, batch_rows=900,
                                              batch_s=3.5, executors=3, task_ceiling=60))  # fmt: skip

    def load(self, rps, past=30, age_s=100.0):
        """A second of load, and forecasts that say it stays so."""
        now = time.time()
        self.send("metrics", MetricSample("orders", "interval", now - 1, now, arrival_rps=rps, executors=3,
                                          task_ceiling=60, mode="act"))  # fmt: skip
        for n in reversed(range(past)):
            at = now - age_s - n * STEP_S
            rows = [[rps * one for one in (0.95, 0.98, 1.0, 1.02, 1.05)]] * 12
            self.send("forecasts", Forecast("orders", at, at + 1, 1.0, STEP_S, LEVELS, rows, "blend", "1", "champion",
                                            "blend", 99, 1, rps))  # fmt: skip
        self.publisher.flush(10)

    def progress(self, order, done, state="running", **fields):
        now = time.time()
        self.send("replays", ReplayProgress(order.id, "orders", now, now, 1.0, state, order.records, done, **fields))
        self.publisher.flush(10)

    def send(self, topic, message):
        self.publisher.send(topic, "orders", message)


def _ranged(settings, said):
    """An order of records of two hours ago; as if each were three hundred, which would take long to send."""
    at = time.time() - 7200
    for n in range(3000):
        said.publisher.send_bytes("events", None, b"{}", partition=n % 2, timestamp_s=at + n / 100)
    said.publisher.flush(10)
    begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at + s)) for s in (-5, 60))
    order = make_order(settings, AskedRange("orders", begin, end, name="fix", compare=True))
    assert (order.records, order.then) == (3000, "compare")
    topic = settings.kafka.topic("events")
    ends = {topic: {part: 300 * past for part, past in order.ends[topic].items()}}
    return ReplayOrder(**{**vars(order), "ends": ends}), (begin, end)


def test_a_backfill_is_planned_ordered_followed_planned_anew_and_published(settings, monkeypatch):
    monkeypatch.setattr(follow, "MOST_LOOK_S", 0.2)
    monkeypatch.setattr(follow, "LEAST_LOOK_S", 0.2)
    said = Saying(settings.kafka)
    said.learned()
    said.load(150.0)
    order, ends = _ranged(settings, said)
    planned = plan_by(settings, order, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 3600)), 0.9)
    assert planned.sentence.startswith("900 k records; ") and planned.order.schedule and planned.hours > 0
    send_order(settings.kafka, planned.order)
    with pytest.raises(OrderError, match="'fix' of job 'orders' has a part of the range of 'other'"):
        make_order(settings, AskedRange("orders", *ends, name="other"))

    # Its deadline is moved up: it is followed as any other order that cannot be kept as planned.
    sooner = replace(planned.order, by=planned.order.by - 2100, wall_time=planned.order.wall_time + LATER_S)
    send_order(settings.kafka, sooner)
    followed = follow.follow_order(settings, sooner)
    said.progress(order, 10, rps=90.0, admitted_rps=90.0)
    first = next(new for new in followed if new.said is not None)
    assert first.said.done == 10
    assert "planned anew" in next(new.note for new in followed if new.note)
    at, newer = time.time() + 5, read_orders(settings.kafka, "orders")["fix"]
    assert newer.executors_at(at) > planned.order.executors_at(at)
    assert newer.wall_time > sooner.wall_time and newer.by == sooner.by
    said.progress(order, order.records, "compared", reason="9 of 50 windows differ")
    *_, last = followed
    assert last.said.state == "compared" and last.finish.startswith("done ")

    published = publish_order(settings, "orders", "fix")
    assert (published.then, published.wanted, published.schedule) == ("publish", "run", newer.schedule)
    followed = follow.follow_order(settings, published)
    said.progress(order, order.records, "done")
    *_, last = followed
    assert last.said.state == "done"
    said.publisher.close()
