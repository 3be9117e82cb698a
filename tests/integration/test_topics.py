"""Topics as a real broker has them."""

import json
import re
from contextlib import closing

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.kafka.broker import Follower, read_records
from pipelines.kafka.compression import readable
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from tests.fakes.waiting import wait_until
from tests.unit.kafka.test_header_names import NoText
from tidecast.connection.transport import TOPICS

pytestmark = pytest.mark.integration
HOUR_MS = 3_600_000


def configured(admin, kafka):
    """The settings of every topic; None while the broker has not heard of all of them, just after their creation."""
    asked = [ConfigResource(ResourceType.TOPIC, kafka.topic(topic)) for topic in TOPICS]
    try:
        return {r.name.removeprefix(kafka.prefix): f.result() for r, f in admin.describe_configs(asked).items()}
    except KafkaException:
        return None


def test_every_topic_keeps_its_records_as_long_as_the_settings_say(empty_topics):
    admin = AdminClient({"bootstrap.servers": empty_topics.bootstrap})
    found = wait_until(lambda: configured(admin, empty_topics), "the topics", every_s=0.1)
    kept = {
        topic: configs["retention.ms"].value
        for topic, configs in found.items()
        if configs["cleanup.policy"].value == "delete"
    }
    assert kept == {topic: str(int(hours * HOUR_MS)) for topic, hours in empty_topics.retention_h.model_dump().items()}
    assert set(TOPICS) - set(kept) == {"control", "contracts", "results"}
    for topic, configs in found.items():  # an open segment outlives its retention
        assert int(configs["segment.ms"].value) <= int(kept.get(topic, 24 * HOUR_MS))


def test_a_topic_that_is_not_there_and_records_that_are_not_acknowledged_are_told_as_the_brokers(empty_topics):
    """Whoever sends catches one error, BrokerError; the autoscaler goes on over it (a contract waits for its turn)."""
    publisher = Publisher(empty_topics, max_block_ms=300)
    with pytest.raises(BrokerError, match=r"takes no record for topic .*nowhere"):
        publisher.send_bytes("nowhere", b"key", b"value")
    publisher.close()
    patient = Publisher(empty_topics)
    for _ in range(1000):
        patient.send_bytes("rejects", b"key", b"x" * 1000)
    with pytest.raises(BrokerError, match="has not acknowledged every record within 0 s"):
        patient.flush(0)
    patient.close()


def test_a_record_with_a_header_whose_name_is_no_utf_8_is_read_among_the_others_of_its_batch(empty_topics):
    publisher = Publisher(empty_topics, linger_ms=500)
    for n in range(5):
        name = NoText("n") if n == 2 else "n"
        publisher.send_bytes("events", b"key", b"%d" % n, partition=0, headers=[(name, b"h")])
    publisher.close()
    with closing(Follower(empty_topics, ["events"])) as follower:
        found = list(follower.read_until(follower.ends()))
    assert [one.value for one in found] == [b"0", b"1", b"2", b"3", b"4"]
    assert [[*one.headers] for one in found] == [["n"], ["n"], ["n\ufffd"], ["n"], ["n"]]


@pytest.mark.usefixtures("own_var")
def test_a_codec_is_told_by_a_topics_own_records_and_whoever_reads_them_reads_those_of_each(empty_topics, monkeypatch):
    values = [
        json.dumps({"word": f"w{n % 7}", "line": n, "text": "again and again " * 20}).encode() for n in range(300)
    ]
    for codec in readable():
        publisher = Publisher(empty_topics, compression_type=None if codec == "none" else codec)
        for value in values:
            publisher.send_bytes("events", b"key", value)
        publisher.close()
    assert [record.value for record in read_records(empty_topics, "events")] == values * len(readable())
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", empty_topics.bootstrap)
    monkeypatch.setenv("TIDECAST_KAFKA__PREFIX", empty_topics.prefix)
    said = CliRunner().invoke(app, ["codecs", "events", "results"])
    assert said.exit_code == 0, said.output
    told = re.search(r"^events: (\w+); .* by (\d+) records, .*: (.*)$", said.output, re.MULTILINE)
    costs = {name: float(cost) for name, cost in re.findall(r"(\w+) ([\d.]+) s", told[3])}
    assert set(costs) == set(readable()) and int(told[2]) > 10
    assert costs[told[1]] == min(costs.values()) or (told[1] == "none" and min(costs.values()) > 0.89 * costs["none"])
    assert "results: none; the topic has no record to measure codecs on" in said.output
