"""Orders and clocks that nobody signed are no ground for one that is: they would come out signed."""

import time
from dataclasses import replace

import pytest

from configs.sections import Kafka
from pipelines.backfill import orders
from pipelines.kafka import clocks
from pipelines.kafka.broker import Record
from pipelines.kafka.signing import Signer
from tidecast.connection.signing import HEADER
from tidecast.control import clock_key
from tidecast.messages import Control, encode
from tidecast.orders import ReplayOrder, order_key

JOB, NAME = "orders", "r1"


@pytest.fixture
def kafka(tmp_path):
    (tmp_path / "keys.yaml").write_text(f"{JOB}: {'k' * 32}")
    return Kafka(bootstrap="127.0.0.1:9", signing_keys=tmp_path / "keys.yaml")


class Topic:
    """The topic `control`, and what is sent to it."""

    def __init__(self, kafka):
        self.records, self.sent, self.signer = [], [], Signer.of(kafka)

    def put(self, key, message, signed):
        value = encode(message)
        headers = {HEADER: self.signer.sign("control", key, value, JOB)} if signed else {}
        self.records.append(Record("control", 0, len(self.records), key, value, 0.0, headers))

    def read(self, kafka, topic):
        return iter(self.records)


@pytest.fixture
def topic(kafka, monkeypatch):
    made = Topic(kafka)
    monkeypatch.setattr(orders, "read_records", made.read)
    monkeypatch.setattr(clocks, "read_records", made.read)
    monkeypatch.setattr(orders, "send_order", lambda kafka, order: made.sent.append(order))
    return made


def order(**changes):
    made = ReplayOrder(NAME, JOB, time.time(), "run", {"events": {"0": 0}}, {"events": {"0": 9}})
    return replace(made, **changes)


def test_a_forged_order_never_comes_out_signed(kafka, topic):
    key = order_key(JOB, NAME)
    topic.put(key, order(), signed=True)
    forged = order(ends={"events": {"0": 9_000}}, wall_time=time.time() + 5)
    topic.put(key, forged, signed=False)
    assert orders.read_orders(kafka, JOB)[NAME].ends == {"events": {"0": 9}}
    orders.change_order(kafka, JOB, NAME, "pause")
    assert [(one.wanted, one.ends) for one in topic.sent] == [("pause", {"events": {"0": 9}})]


def test_an_order_that_only_somebody_without_the_key_gave_is_not_known(kafka, topic):
    topic.put(order_key(JOB, NAME), order(), signed=False)
    with pytest.raises(orders.OrderError, match="known are none"):
        orders.change_order(kafka, JOB, NAME, "pause")


def test_a_clock_that_nobody_signed_does_not_count(kafka, topic):
    now = time.time()
    topic.put(clock_key(JOB), Control(JOB, now, None, now, 0.0, 200.0), signed=False)
    assert clocks.read_clock(kafka, JOB) is None
    topic.put(clock_key(JOB), Control(JOB, now, None, now, 0.0, 360.0), signed=True)
    topic.put(clock_key(JOB), Control(JOB, now, None, now, 0.0, 1.0), signed=False)
    assert clocks.read_clock(kafka, JOB).scale == 360
