"""The agent's outbox keeps messages while no broker can be reached, and counts what is lost."""

from __future__ import annotations

import queue
import socket
import threading
import time

import pytest
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError

from tests.fakes.clock import clock_with
from tests.fakes.waiting import PATIENCE_S
from tidecast.connection import outbox
from tidecast.messages import Control


class ForgetfulProducer:
    """Knows no topic until it is told to."""

    def __init__(self):
        self.taken, self.knows_topics, self.callbacks, self.errbacks = [], False, [], []

    def partitions_for(self, topic):
        return {0}

    def send(self, topic, key, value, headers):
        if not self.knows_topics:
            raise KafkaTimeoutError("Failed to update metadata after 5.0 secs.")
        self.taken.append((topic, key))
        return self

    def add_errback(self, *given):
        self.errbacks.append(given)
        return self

    def add_callback(self, *given):
        self.callbacks.append(given)
        return self

    def flush(self, timeout):
        self.flushed = True

    def close(self, timeout):
        self.closed = True

    def acknowledge(self, number):
        function, message = self.callbacks[number]
        function(message, None)

    def refuse(self, number, error=None):
        function, message = self.errbacks[number]
        function(message, error or KafkaTimeoutError("expired"))


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
    box.enqueue("metrics", "third", Control("third", time.time()))
    box.send_next(0)
    producer.acknowledge(2)
    assert [record.message for record in caplog.records] == ["first: metrics reach the broker at 127.0.0.1:1"]


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
        function, message = producer.errbacks[-1]
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


def test_a_control_word_outlasts_that_its_topic_is_not_known_for_a_while_and_others_are_counted(producer, caplog):
    with socket.create_server(("127.0.0.1", 0)) as broker:
        box = outbox.Outbox(f"127.0.0.1:{broker.getsockname()[1]}", {}, "test")
        for topic in ("control", "metrics"):
            box.enqueue(topic, "orders", Control("orders", time.time()))
        for _ in range(2):
            with pytest.raises(KafkaTimeoutError):
                box.send_next(0)
    producer.knows_topics = True
    box.enqueue("metrics", "orders", Control("orders", time.time()))
    assert [box.send_next(0) for _ in range(3)] == [True, True, False]
    assert [topic for topic, _ in producer.taken] == ["control", "metrics"]
    producer.acknowledge(1)
    assert "a message to control is sent again" in caplog.text and "1 messages were lost" in caplog.text


@pytest.fixture
def moment(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(outbox, "time", clock_with(monotonic=lambda: now[0], sleep=lambda seconds: None))
    return now


@pytest.fixture
def fault(monkeypatch):
    """Why no connection opens, and how often that was asked."""
    told = {"fault": "", "asked": 0}

    def ask(address):
        told["asked"] += 1
        return told["fault"]

    monkeypatch.setattr(outbox, "connection_fault", ask)
    return told


def test_it_says_whether_anything_is_not_acknowledged_yet(producer, moment, fault):
    box, producer.knows_topics = outbox.Outbox("127.0.0.1:1", {}, "test"), True
    assert not box.waiting
    for topic in ("metrics", "control"):
        box.enqueue(topic, "orders", Control("orders", time.time()))
    told = [box.waiting]
    for _ in range(2):
        box.send_next(0)
    told.append(box.waiting)
    producer.acknowledge(0)
    producer.refuse(1)  # and is sent again
    told.append(box.waiting)
    box.send_next(0)
    told.append(box.waiting)
    producer.acknowledge(2)
    assert told == [True] * 4 and not box.waiting
    producer.knows_topics, fault["fault"] = False, "no connection"
    box.enqueue("metrics", "orders", Control("orders", time.time()))
    with pytest.raises(KafkaTimeoutError):
        box.send_next(0)
    assert box.waiting


class LookedInto(queue.Queue):
    """A queue beside which another thread looks whether the outbox waits for anything, when a message was taken."""

    def get(self, *given, **named):
        taken = super().get(*given, **named)
        look = threading.Thread(target=lambda: self.told.append(self.box.waiting))
        look.start()
        look.join(0.2)  # where it has to wait for the outbox it looks later
        self.looks.append(look)
        return taken


def test_a_message_waits_also_while_it_goes_from_hand_to_hand(producer, moment, monkeypatch):
    box, told, looks = outbox.Outbox("127.0.0.1:1", {}, "test"), [], []
    box._queue = LookedInto()
    box._queue.box, box._queue.told, box._queue.looks = box, told, looks

    def ask(address):
        told.append(box.waiting)
        return "no connection"

    monkeypatch.setattr(outbox, "connection_fault", ask)
    box.enqueue("metrics", "orders", Control("orders", time.time()))
    with pytest.raises(KafkaTimeoutError):  # no topic is known
        box.send_next(0)
    for look in looks:
        look.join()
    assert told == [True, True] and box.waiting


def test_a_message_that_comes_while_one_is_waited_for_is_sent_at_once(producer):
    box, producer.knows_topics = outbox.Outbox("127.0.0.1:1", {}, "test"), True
    sends = threading.Thread(target=box.send_next, args=(PATIENCE_S,))
    sends.start()
    box.enqueue("metrics", "orders", Control("orders", time.time()))
    sends.join(PATIENCE_S / 2)
    assert not sends.is_alive() and producer.taken == [("metrics", b"orders")]


def test_in_an_outage_messages_wait_in_the_queue_and_go_out_in_order_after_it(producer, moment, fault, caplog):
    box, producer.knows_topics = outbox_at(1), True
    assert box.send_next(0)
    fault["fault"], moment[0] = "no connection", outbox.SILENT_S
    for name in ("third", "fourth"):
        box.enqueue("outcomes", name, Control(name, time.time()))
    assert not any(box.send_next(0) for _ in range(50))
    assert fault["asked"] == 1, "it is looked again after a while"
    moment[0] += 1000.0
    assert [record.message for record in caplog.records] == ["messages wait: no connection"]
    producer.refuse(0)  # what the producer had when the broker went is lost
    assert not box.send_next(0) and fault["asked"] == 2
    fault["fault"] = ""
    moment[0] += outbox.LOOK_S
    assert [box.send_next(0) for _ in range(4)] == [True, True, True, False]
    assert [key for _, key in producer.taken] == [b"first", b"second", b"third", b"fourth"]
    assert caplog.records[-1].message == "messages are sent again"


def test_no_connection_is_tried_while_the_broker_acknowledges_or_nothing_was_sent(producer, moment, fault):
    box, producer.knows_topics = outbox_at(1), True
    box.send_next(0)
    producer.acknowledge(0)
    moment[0] = 1000.0
    assert box.send_next(0)
    moment[0] += outbox.SILENT_S / 2
    assert not box.send_next(0) and fault["asked"] == 0


def test_losses_are_said_when_they_begin_and_counted_when_the_topic_takes_messages_again(producer, caplog):
    caplog.set_level("WARNING", "tidecast")
    box, producer.knows_topics = outbox.Outbox("127.0.0.1:1", {}, "test"), True
    for topic in ["metrics"] * 500 + ["outcomes"] * 2:
        box.enqueue(topic, "orders", Control("orders", time.time()))
        box.send_next(0)
    for number in range(499):
        producer.refuse(number)
    producer.acknowledge(500)  # of another topic
    assert [record.message for record in caplog.records] == [
        "a message to metrics at 127.0.0.1:1 was lost, more may be, their number follows: KafkaTimeoutError('expired')"
    ]
    producer.acknowledge(499)
    assert caplog.records[1].message == "metrics reach the broker at 127.0.0.1:1 again; 499 messages were lost"
    producer.acknowledge(501)
    assert len(caplog.records) == 2


def test_messages_that_newer_ones_push_out_of_a_full_queue_are_counted(producer, monkeypatch, caplog):
    monkeypatch.setattr(outbox, "KEPT", 2)
    box, producer.knows_topics = outbox_at(1), True
    for number in range(100):
        box.enqueue("metrics", str(number), Control("orders", time.time()))
    assert len(caplog.records) == 1 and "2 newer ones wait" in caplog.text
    assert [box.send_next(0) for _ in range(3)] == [True, True, False]
    assert producer.taken == [("metrics", b"98"), ("metrics", b"99")]
    producer.acknowledge(0)
    assert "100 messages were lost" in caplog.text


def test_the_last_control_word_of_a_key_outlasts_a_full_queue(producer, monkeypatch):
    monkeypatch.setattr(outbox, "KEPT", 3)
    box, producer.knows_topics = outbox.Outbox("127.0.0.1:1", {}, "test"), True
    for topic, key in (("control", "a"), ("control", "b"), ("control", "a"), *[("metrics", f"{n}") for n in range(9)]):
        box.enqueue(topic, key, Control("orders", time.time()))
    assert [box.send_next(0) for _ in range(4)] == [True, True, True, False]
    assert sorted(producer.taken) == [("control", b"a"), ("control", b"b"), ("metrics", b"8")]
    assert box._lost == {"control": 1, "metrics": 8}


def test_control_words_of_more_keys_than_are_kept_push_each_other_out(producer, monkeypatch):
    monkeypatch.setattr(outbox, "KEPT", 2)
    box = outbox.Outbox("127.0.0.1:1", {}, "test")
    for key in "abc":
        box.enqueue("control", key, Control("orders", time.time()))
    assert box._queue.qsize() == 2 and box._lost == {"control": 1}


def test_what_nobody_took_by_the_end_is_counted_and_the_producer_is_closed(producer, moment, fault, caplog):
    box, producer.knows_topics = outbox_at(1), True
    box.enqueue("outcomes", "orders", Control("orders", time.time()))
    box.send_next(0)
    fault["fault"], moment[0] = "no connection", outbox.SILENT_S
    with pytest.raises(KafkaTimeoutError, match="2 messages wait for the broker at 127"):
        box.close()
    assert producer.closed and producer.taken == [("metrics", b"first")]
    assert [record.message for record in caplog.records[1:]] == [
        "2 messages to metrics were not acknowledged by the broker at 127.0.0.1:1",  # one of them is the producer's
        "1 messages to outcomes were not acknowledged by the broker at 127.0.0.1:1",
    ]


@pytest.mark.parametrize("newer_arrived", [False, True])
def test_a_control_word_is_not_sent_again_once_there_is_a_newer_one_of_its_key(producer, newer_arrived):
    box, producer.knows_topics = outbox.Outbox("127.0.0.1:1", {}, "test"), True
    for key in ("orders:mode", "orders:replay:a", "orders:mode"):
        box.enqueue("control", key, Control("orders", time.time()))
        box.send_next(0)
    if newer_arrived:
        producer.acknowledge(2)
    producer.refuse(0)
    assert not box.send_next(0)
    producer.refuse(1)  # of which no other came
    assert box.send_next(0) and producer.taken[3:] == [("control", b"orders:replay:a")]
