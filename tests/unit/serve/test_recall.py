"""What a server learns at its start from the forecasts that were sent before."""

import dataclasses

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.kafka.broker import Record
from pipelines.serve.fast import log_feed
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.outbox import RECORD_HEADER
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw
from tidecast.messages import Forecast, decode, encode

JOB = "orders"
LOG = [IncomingSample(raw(JOB, BEGIN + i, 100.0 + i), ("metrics", 0, i), str(i + 1).encode()) for i in range(60)]


class Topic:
    """Takes what is sent, and gives it back as it lies on the topic."""

    def __init__(self):
        self.records = []

    def send(self, topic, key, value, headers, taken=None):
        self.records.append(Record(topic, 0, len(self.records), key, value, NOW, dict(headers)))
        taken(True)

    def read_all(self, kafka, topic, newest=None):
        return self.records if newest is None else self.records[-newest:]


@pytest.mark.parametrize("tail", [5, 10_000])
def test_a_rebuild_that_was_cut_off_sends_nothing_again(tmp_path, monkeypatch, tail):
    topic = Topic()
    monkeypatch.setattr(log_feed, "read_records", topic.read_all)
    monkeypatch.setattr(log_feed, "TAIL", tail)
    with Store.open(tmp_path / "whole") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Naive(TASK))))
        core.process(LOG[:50], NOW)
        core.outbox.send(topic)
    sent = list(topic.records)
    assert len(sent) > 20 and all(RECORD_HEADER in record.headers for record in sent)
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Naive(TASK))))
        log_feed.recall_sent(None, core, {7}, True)
        core.process(LOG[:30], NOW)  # and here the process is killed
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        log_feed.recall_sent(None, core, {7}, False)
        core.process(LOG[30:], NOW)
        core.outbox.send(topic)
    assert len(topic.records) == len(sent) + 10 and topic.records[: len(sent)] == sent


def sent_by_a_server(folder, monkeypatch):
    """The topic of forecasts, which is read from then on, once one has sent those of the whole log, and its newest."""
    topic = Topic()
    monkeypatch.setattr(log_feed, "read_records", topic.read_all)
    with Store.open(folder / "whole") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Naive(TASK))))
        core.process(LOG, NOW)
        core.outbox.send(topic)
        newest = core.newest_forecast_window(JOB)
    return topic, newest


def test_what_no_server_has_issued_is_not_taken_up(tmp_path, monkeypatch):
    topic, newest = sent_by_a_server(tmp_path, monkeypatch)
    (*_, last) = topic.records
    forged = decode(Forecast, last.value)
    for epoch, ahead in ((8, 5), (6, 3), (7, 10**6)):  # nobody's epoch, or a server's with a time beyond every clock
        changed = dataclasses.replace(forged, epoch=epoch, time=forged.time + ahead * STEP, time_scale=1.0)
        topic.send("forecasts", JOB, encode(changed), [(RECORD_HEADER, last.headers[RECORD_HEADER])], lambda good: None)
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        log_feed.recall_sent(None, core, {7}, True)
        assert core.newest_forecast_window(JOB) == newest == max(origin for _, origin in core.closer.adopted)


DEEP = b"\x99\x01\xa1m\x93\xa0\xa0\xa0\x00\x00\xc2\xa0\xc4\x00" + b"\x91" * 200_000 + b"\xc0"
"""A note with a field more, which is nested deeper than anybody reads."""


@pytest.mark.parametrize("header", [b"\xc1", b"", b"\x98\x00\xa1\xff", pytest.param(DEEP, id="deep"), None])
def test_a_forecast_with_a_note_that_nobody_can_read_is_left_out(tmp_path, monkeypatch, header):
    topic, newest = sent_by_a_server(tmp_path, monkeypatch)
    topic.send("forecasts", JOB, topic.records[-1].value, [(RECORD_HEADER, header)], lambda good: None)
    with Store.open(tmp_path / "again") as store:
        core = Core(store, STEP, {JOB}, 7, True)
        log_feed.recall_sent(None, core, {7}, True)
        assert core.newest_forecast_window(JOB) == newest == max(origin for _, origin in core.closer.adopted)
