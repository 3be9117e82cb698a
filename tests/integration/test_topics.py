"""Topics as a real broker has them."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

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
