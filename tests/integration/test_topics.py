"""Topics as a real broker has them."""

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from tidecast.transport import TOPICS

pytestmark = pytest.mark.integration
HOUR_MS = 3_600_000


def test_every_topic_keeps_its_records_as_long_as_the_settings_say(empty_topics):
    admin = KafkaAdminClient(bootstrap_servers=empty_topics.bootstrap)
    names = ["cleanup.policy", "retention.ms", "segment.ms"]
    asked = [ConfigResource(ConfigResourceType.TOPIC, empty_topics.topic(topic), names) for topic in TOPICS]
    found = admin.describe_configs(asked, config_filter="all")["topic"]
    admin.close()
    kept = {
        topic: settings["retention.ms"]["value"] for topic in TOPICS for settings in [found[empty_topics.topic(topic)]]
        if settings["cleanup.policy"]["value"] == "delete"
    }  # fmt: skip
    assert kept == {t: str(int(h * HOUR_MS)) for t, h in empty_topics.retention_h.model_dump().items()}
    assert set(TOPICS) - set(kept) == {"control", "contracts", "results"}
    for topic in TOPICS:  # an open segment outlives its retention
        settings = found[empty_topics.topic(topic)]
        assert int(settings["segment.ms"]["value"]) <= int(kept.get(topic, 24 * HOUR_MS))
