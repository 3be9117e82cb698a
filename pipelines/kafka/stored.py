"""What topics take on the brokers' disks."""

from __future__ import annotations

from collections.abc import Collection

from configs.sections import Kafka
from pipelines.kafka.broker import admin_client


def stored_bytes(kafka: Kafka, topics: Collection[str]) -> dict[str, int]:
    """What each topic takes on the brokers' disks, replicas included."""
    admin = admin_client(kafka)
    try:
        logs = [log for one in admin.describe_log_dirs(list(map(kafka.topic, topics))) for log in one["log_dirs"]]
    finally:
        admin.close()
    found = dict.fromkeys(topics, 0)
    for topic in (topic for log in logs for topic in log["topics"]):
        found[topic["name"].removeprefix(kafka.prefix)] += sum(
            partition["partition_size"] for partition in topic["partitions"]
        )
    return found
