"""Kafka for the agent: clients with the options that a low, steady rate of small records needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

TOPICS = (
    "events", "metrics", "forecasts", "decisions", "outcomes", "heartbeats", "contracts", "control", "rejects",
    "results", "windows",
)  # fmt: skip

# After a broker is back, clients must find it within a second, not within the default half minute.
_COMMON: dict[str, Any] = {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 1000}


def producer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaProducer:
    """A producer that loses nothing over a broker outage of two minutes.

    It waits for no second record, and packs each by itself: 20 to 40 µs for half of its size, with what Python brings.
    """
    settings = {
        "linger_ms": 0, "acks": "all", "delivery_timeout_ms": 120_000, "compression_type": "gzip", **_COMMON, **options,
    }  # fmt: skip
    return KafkaProducer(bootstrap_servers=bootstrap, **settings, **(security or {}))


def consumer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaConsumer:
    """A consumer that keeps no position in the broker; assign or subscribe it yourself."""
    settings = {
        "group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 50, **_COMMON, **options,
    }  # fmt: skip
    return KafkaConsumer(bootstrap_servers=bootstrap, **settings, **(security or {}))
