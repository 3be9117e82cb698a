"""The agent's outbox keeps a message while no broker can be reached."""

from __future__ import annotations

import socket
import time

import pytest
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError

from tidecast.connection import outbox
from tidecast.messages import Control


class ForgetfulProducer:
    """Knows no topic until it is told to."""

    def __init__(self):
        self.taken, self.knows_topics, self.callbacks = [], False, []

    def partitions_for(self, topic):
        return {0}

    def send(self, topic, key, value, headers):
        if not self.knows_topics:
            raise KafkaTimeoutError("Failed to update metadata after 5.0 secs.")
        self.taken.append((topic, key))
        return self

    def add_errback(self, *given):
        self.errback = given
        return self

    def add_callback(self, *given):
        self.callbacks.append(given)
        return self


@pytest.fixture
def producer(monkeypatch):
    made = ForgetfulProducer()
    monkeypatch.setattr(outbox, "producer", lambda *where, **options: made)
    return made


def outbox_at(port):
    box = outbox.Outbox(f"127.0.0.1:{port}", {}, "test")
    for job in ("first", "second"):
        box.enqueue("metrics", job, Control(job, time.time()))
    return box


def test_a_message_is_kept_in_its_place_while_no_broker_can_be_reached(producer):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        box = outbox_at(taken.getsockname()[1])
        with pytest.raises(KafkaTimeoutError):
            box.send_next(0)
    producer.knows_topics = True
    assert [box.send_next(0) for _ in range(3)] == [True, True, False]
    assert producer.taken == [("metrics", b"first"), ("metrics", b"second")]


def test_that_the_broker_takes_something_is_said_once(producer, caplog):
    caplog.set_level("INFO", "tidecast")
    box, producer.knows_topics = outbox_at(1), True
    assert [box.send_next(0) for _ in range(2)] == [True, True]
    assert caplog.text == "", "nothing has been acknowledged"
    for function, message in producer.callbacks:  # both were sent before an answer came
        function(message, None)
    assert [record.message for record in caplog.records] == ["first: metrics reach the broker at 127.0.0.1:1"]
    box.enqueue("metrics", "third", Control("third", time.time()))
    box.send_next(0)
    assert len(producer.callbacks) == 2


def test_a_control_word_that_was_not_acknowledged_is_sent_again_and_others_are_not(producer):
    with socket.create_server(("127.0.0.1", 0)) as broker:
        box = outbox_at(broker.getsockname()[1])
    producer.knows_topics = True
    while box.send_next(0):
        pass
    for topic, error, many in (
        ("metrics", KafkaTimeoutError("expired"), 1), ("control", KafkaTimeoutError("expired"), 2),
        ("control", TopicAuthorizationFailedError("no"), 1),
    ):  # fmt: skip
        producer.taken.clear()
        box.enqueue(topic, "orders", Control("orders", time.time()))
        box.send_next(0)
        function, message = producer.errback
        function(message, error)
        box.send_next(0)
        assert producer.taken == [(topic, b"orders")] * many


def test_a_topic_that_the_broker_does_not_have_holds_up_no_other_message(producer):
    with socket.create_server(("127.0.0.1", 0)) as broker:
        box = outbox_at(broker.getsockname()[1])
        with pytest.raises(KafkaTimeoutError):
            box.send_next(0)
    producer.knows_topics = True
    box.send_next(0)
    assert producer.taken == [("metrics", b"second")]
