"""Every client of the ring against a broker behind TLS, a private CA and a login; an agent between two brokers."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialUpsertion

from pipelines.kafka.broker import Follower, read_records, topic_offsets
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.librdkafka import Feed, Sender
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.spark import spark_options
from pipelines.kafka.topics import create_topics
from tests.fakes import driver
from tests.fakes.secure_broker import PASSWORD, USER, secure_broker, with_login
from tests.fakes.waiting import wait_until
from tidecast import attach, control
from tidecast.connection.reach import UnreachableError
from tidecast.connection.security import client_options
from tidecast.connection.transport import CONNECT_MS, producer
from tidecast.messages import MetricSample, decode

pytestmark = [pytest.mark.integration, pytest.mark.spark]

IMPATIENT_MS = 300
WRONG = {
    "password": ({"sasl_plain_password": "guessed"}, "sasl_plain_password"),
    "CA": ({"ssl_cafile": "/etc/ssl/certs/ca-certificates.crt"}, "certificate is not accepted"),
    "no TLS": ({"security_protocol": "SASL_PLAINTEXT"}, "speaks TLS"),
    "no file": ({"ssl_cafile": "/nowhere/ca.pem"}, "ssl_cafile='/nowhere/ca.pem' is not there"),
}


@pytest.fixture
def impatient(monkeypatch):
    """Who is refused tries on until the time to connect is over, and is told why only then."""
    monkeypatch.setattr("tidecast.connection.transport.CONNECT_MS", IMPATIENT_MS)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secure")
    with pytest.MonkeyPatch.context() as patch, secure_broker(folder, patch) as (stack, settings):
        create_topics(settings.kafka)
        admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap, **client_options(settings.kafka.security))
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, "SCRAM-SHA-256", PASSWORD)])
        admin.close()
        yield lambda **changes: with_login(stack.settings, folder, **changes).kafka


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_every_client_of_the_ring_gets_in(secured, spark, mechanism):
    kafka = secured(sasl_mechanism=mechanism)
    before = topic_offsets(kafka, "metrics")[0][1]
    publisher, sender, fed = Publisher(kafka), Sender(kafka), []
    feed = Feed(kafka, "metrics", {0: before}, fed.extend)
    publisher.send_bytes("metrics", b"by", b"kafka-python")
    publisher.close()
    taken = []
    sender.send("metrics", "by", b"librdkafka", [], taken.append)
    wait_until(lambda: sender.poll() or taken, "the broker takes librdkafka's record")
    sender.close()
    wait_until(lambda: len(fed) == 2, "librdkafka's feed")
    feed.close()
    assert {r.value for r in read_records(kafka, "metrics", newest=2)} == {b"kafka-python", b"librdkafka"}

    source = spark.read.format("kafka").options(**spark_options(kafka)).option("subscribe", "metrics")
    values = source.option("startingOffsets", f'{{"metrics": {{"0": {before}}}}}').load().select("key", "value")
    values.write.format("kafka").options(**spark_options(kafka)).option("topic", "windows").save()
    assert [r.value for r in read_records(kafka, "windows")][-2:] == [b"kafka-python", b"librdkafka"]

    control.set_mode(kafka.bootstrap, "orders", "observe", kafka.security)
    follower = Follower(kafka, ["control"])
    wait_until(lambda: follower.poll(0.1), "the control word")
    follower.close()


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_security_is_a_named_error_and_leaves_no_thread(secured, wrong):
    changes, words = WRONG[wrong]
    kafka, threads = secured(**changes), set(threading.enumerate())
    with pytest.raises(UnreachableError, match=words) as refused:
        producer(kafka.bootstrap, kafka.security, bootstrap_timeout_ms=IMPATIENT_MS)
    assert kafka.bootstrap in str(refused.value)
    assert not set(threading.enumerate()) - threads


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", [create_topics, lambda kafka: list(read_records(kafka, "metrics"))])
def test_the_pipeline_names_what_is_wrong_in_time(secured, call, wrong):
    changes, words = WRONG[wrong]
    began_s = time.monotonic()
    with pytest.raises(BrokerError, match=words):
        call(secured(**changes))
    assert time.monotonic() - began_s < 30 - (CONNECT_MS - IMPATIENT_MS) / 1000


@pytest.fixture(scope="module")
def query(secured, spark, tmp_path_factory):
    """A query that reads the secure broker and writes nowhere."""
    kafka = secured()
    source = spark.readStream.format("kafka").options(**spark_options(kafka)).option("subscribe", "events").load()
    made = source.writeStream.format("noop").option("checkpointLocation", str(tmp_path_factory.mktemp("query")))
    running = made.trigger(processingTime="500 milliseconds").start()
    yield running
    running.stop()


def test_an_agent_reads_one_broker_and_speaks_to_another(secured, query, broker):
    create_topics(broker)
    follower = Follower(broker, ["metrics"], "latest")
    agent = attach(query, job="between", bootstrap=broker.bootstrap, security={})
    publisher = Publisher(secured())

    def arrived():
        publisher.send_bytes("events", b"k", b"{}")
        found = [decode(MetricSample, r.value) for r in follower.poll(0.1) if r.key == "between"]
        return [m for m in found if m.kind == "interval" and m.arrival_rps > 0]

    wait_until(arrived, "arrivals of the secure broker on the open one")
    publisher.close()
    agent.stop()
    assert topic_offsets(broker, "events") == {p: (0, 0) for p in range(12)}


@pytest.mark.usefixtures("impatient")
def test_an_agent_that_cannot_reach_its_broker_says_why_and_touches_nothing(secured, query, caplog, monkeypatch):
    changes, words = WRONG["password"]
    kafka, cluster = secured(**changes), driver.NotedActuator()
    monkeypatch.setattr("tidecast.agent.ExecutorActuator", lambda *_: cluster)
    level = logging.getLogger("kafka").level
    with caplog.at_level(logging.WARNING, "tidecast"):
        agent = attach(query, job="orders", mode="act", bootstrap=kafka.bootstrap, security=kafka.security)
        wait_until(lambda: words in caplog.text, "a warning that names what is wrong")
    said = next(r.getMessage() for r in caplog.records if words in r.getMessage())
    assert kafka.bootstrap in said and "orders" in said
    assert cluster.calls == [] and agent.mode == "observe"
    assert logging.getLogger("kafka").level == level
    agent.stop()
