"""After a real broker has refused records, taken them too late, or was killed, the same client sends the next ones."""

import os
import queue
import signal
import threading
import time
from contextlib import closing, suppress
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from configs.settings import load
from pipelines.kafka.broker import read_records
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic
from pipelines.kafka.transactions import BatchWriter, OutRecord
from pipelines.stack.stack import Stack
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.connection import outbox
from tidecast.control import Control

pytestmark = pytest.mark.integration
SHORT = {"delivery_timeout_ms": 1500, "request_timeout_ms": 1000}
"""As long as a client tries, in place of two minutes."""


def configure(kafka, topic, name, value):
    """Set an option of a topic, and wait until the broker says so."""
    admin, whole = AdminClient({"bootstrap.servers": kafka.bootstrap}), kafka.topic(topic)
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    at = ConfigResource(ResourceType.TOPIC, whole, incremental_configs=[change])
    admin.incremental_alter_configs([at])[at].result()
    asked = ConfigResource(ResourceType.TOPIC, whole)
    wait_until(lambda: admin.describe_configs([asked])[asked].result()[name].value == value, name, every_s=0.1)


def keys(kafka, topic):
    return {record.key for record in read_records(kafka, topic)}


class ByOutbox:
    """The agent's way out, or that of replays in an application of their own."""

    def __init__(self, kafka, monkeypatch):
        monkeypatch.setattr(outbox, "producer", partial(outbox.producer, **SHORT))
        self.box = outbox.Outbox(kafka.bootstrap, kafka.security, "test", kafka.prefix)

    def send(self, topic, key, text=""):
        self.box.enqueue(topic, key, Control(key, time.time(), by=text or None))
        while self.box.send_next(0):
            pass

    def has_failed(self):
        return bool(self.box._lost)

    def close(self):
        self.box.close()


class ByPublisher:
    """The way out of autoscaler and serving."""

    def __init__(self, kafka, _):
        self.publisher = Publisher(kafka, **SHORT)

    def send(self, topic, key, text=""):
        self.publisher.send(topic, key, Control(key, time.time(), by=text or None))

    def has_failed(self):
        try:
            self.publisher.flush(5)
        except BrokerError:
            return True
        return False

    def close(self):
        with suppress(BrokerError):
            self.publisher.close()


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory):
    """The stack of a broker of these tests' own, as others have to answer."""
    with Stack(load(var=tmp_path_factory.mktemp("own")), {"broker"}) as stack:
        for topic, partitions in (*((one, 1) for one in outbox.TOPICS), ("results", 2)):
            create_topic(stack.settings.kafka.model_copy(update={"event_partitions": partitions}), topic)
        yield stack


@pytest.mark.parametrize("kind", [ByOutbox, ByPublisher])
def test_after_an_outage_that_outlasted_the_clients_patience_messages_go_out_again(own_broker, monkeypatch, kind):
    kafka, pid = own_broker.settings.kafka, own_broker.processes["broker"].pid
    with closing(kind(kafka, monkeypatch)) as sender:
        sender.send("metrics", f"before {kind.__name__}")
        wait_until(lambda: f"before {kind.__name__}" in keys(kafka, "metrics"), "the first", every_s=0.1)
        os.kill(pid, signal.SIGSTOP)
        try:
            sender.send("metrics", "on its way")
            wait_until(sender.has_failed, "that it is given up", every_s=0.1)
        finally:
            os.kill(pid, signal.SIGCONT)
        sender.send("metrics", f"after {kind.__name__}")
        wait_until(lambda: f"after {kind.__name__}" in keys(kafka, "metrics"), "the next", 20.0, every_s=0.1)


def test_who_sends_in_transactions_goes_on_when_the_broker_has_come_back(own_broker):
    writers = [BatchWriter(own_broker.settings.kafka, "block", part, 1, "results") for part in range(2)]
    told = [OutRecord("results", b"k", b"v")]
    assert [one.send(0, told) for one in writers] == [1, 1]
    own_broker.processes["broker"].kill()
    own_broker.respawn("broker")
    sent = queue.Queue()
    for one in writers:  # of threads that may be left: a client that has lost the coordinator never returns
        threading.Thread(target=lambda one=one: sent.put(one.send(1, told)), daemon=True).start()
    assert [sent.get(timeout=PATIENCE_S) for _ in writers] == [1, 1]


@pytest.mark.parametrize("kind", [ByOutbox, ByPublisher])
def test_a_message_that_the_broker_refuses_for_good_is_the_only_one_that_is_lost(empty_topics, monkeypatch, kind):
    configure(empty_topics, "outcomes", "max.message.bytes", "400")
    with closing(kind(empty_topics, monkeypatch)) as sender:
        sender.send("outcomes", "refused", "".join(map(str, range(1000))))
        wait_until(sender.has_failed, "that it is refused", every_s=0.1)
        for topic in ("metrics", "outcomes"):
            sender.send(topic, "after")
            wait_until(lambda topic=topic: keys(empty_topics, topic) == {"after"}, topic, 10.0, every_s=0.1)
