"""Deleting topics, which no part of the product does."""

from kafka import KafkaAdminClient

from configs.sections import Kafka
from tests.fakes.waiting import wait_until


def delete_topics(kafka: Kafka) -> None:
    """Delete every topic under the prefix, and wait until the broker has forgotten the names."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    try:
        assert kafka.prefix, "all topics of the broker would go"
        admin.delete_topics(mine := [name for name in admin.list_topics() if name.startswith(kafka.prefix)])
        wait_until(lambda: not set(mine) & set(admin.list_topics()), "the topics are gone", every_s=0.05)
    finally:
        admin.close()
