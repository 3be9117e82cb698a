"""Topics as a real broker has them."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pipelines.kafka.broker import BrokerError
from pipelines.kafka.publisher import Publisher
from tests.fakes.waiting import wait_until
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
