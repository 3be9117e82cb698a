"""What a server learns at its start from the forecasts that were sent before."""

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.kafka.librdkafka import Fetched
from pipelines.serve.fast import log_feed
from pipelines.serve.fast.core import Arrival, Core
from pipelines.serve.fast.outbox import NOTE
from pipelines.serve.fast.swapping import swap
from pipelines.serve.models.model_set import pack
from pipelines.serve.models.ready import prepare
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw

JOB = "orders"
LOG = [Arrival(raw(JOB, BEGIN + i, 100.0 + i), ("metrics", 0, i), str(i + 1).encode()) for i in range(60)]


class Topic:
    """Takes what is sent, and gives it back as it lies on the topic."""

    def __init__(self):
        self.records = []

    def send(self, topic, key, value, headers, taken=None):
        self.records.append(Fetched(0, len(self.records), key, value, dict(headers)))
        taken(True)

    def read_back(self, kafka, topic, newest=None):
        return self.records if newest is None else self.records[-newest:]


@pytest.mark.parametrize("tail", [5, 10_000])
def test_a_rebuild_that_was_cut_off_sends_nothing_again(tmp_path, monkeypatch, tail):
    topic = Topic()
    monkeypatch.setattr(log_feed, "read_back", topic.read_back)
    monkeypatch.setattr(log_feed, "TAIL", tail)
    with Store.open(tmp_path / "whole") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        swap(core, prepare(core.windows, JOB, "m", "1", pack(Naive(TASK))))
        core.take(LOG[:50], NOW)
        core.outbox.send(topic)
    sent = list(topic.records)
    assert len(sent) > 20 and all(NOTE in record.headers for record in sent)
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        swap(core, prepare(core.windows, JOB, "m", "1", pack(Naive(TASK))))
        log_feed.recall(None, core, True)
        core.take(LOG[:30], NOW)  # and here the process is killed
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        log_feed.recall(None, core, False)
        core.take(LOG[30:], NOW)
        core.outbox.send(topic)
    assert len(topic.records) == len(sent) + 10 and topic.records[: len(sent)] == sent
