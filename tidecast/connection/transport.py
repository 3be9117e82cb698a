"""Kafka for the agent: clients with the options that a low, steady rate of small records needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from tidecast.connection.reach import unreachable
from tidecast.connection.security import client_options

C = TypeVar("C")

TOPICS = (
    "events", "metrics", "forecasts", "decisions", "outcomes", "heartbeats", "contracts", "control", "rejects",
    "results", "windows",
)  # fmt: skip

CONNECT_MS = 10_000
"""Patience with a broker that was never reached; then it is said why."""
# After a broker is back, clients must find it within a second, not within the default half minute.
_COMMON: dict[str, Any] = {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 1000}


def producer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaProducer:
    """A producer that loses nothing over a broker outage of two minutes; raises as `connected` does.

    It waits for no second record, and packs each by itself: 20 to 40 µs for half of its size, with what Python brings.
    """
    settings = {
        "linger_ms": 0, "acks": "all", "delivery_timeout_ms": 120_000, "compression_type": "gzip", **_COMMON, **options,
    }  # fmt: skip
    return connected(KafkaProducer, bootstrap, security, **settings)


def consumer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaConsumer:
    """A consumer that keeps no position in the broker; assign or subscribe it yourself. Raises as `connected` does."""
    settings = {
        "group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 50, **_COMMON, **options,
    }  # fmt: skip
    return connected(KafkaConsumer, bootstrap, security, **settings)


def connected(kind: type[C], bootstrap: str, security: Mapping[str, Any] | None, **options: Any) -> C:
    """A client of kafka-python once the broker has answered it.

    Raises:
        tidecast.connection.reach.UnreachableError: it did not within `bootstrap_timeout_ms`, or refused; nothing is
            left behind.
        ValueError: a security option makes no sense.
    """
    made: list[Any] = []

    def kept(**configs: Any) -> Any:
        made.append(network(**configs))
        return made[-1]

    client_of: Any = kind
    network = client_of.DEFAULT_CONFIG["kafka_client"]
    secured = client_options(security or {})
    if unknown := sorted(set(secured) - set(client_of.DEFAULT_CONFIG)):
        raise ValueError(f"security: kafka-python has no option {unknown[0]!r}; its names are like sasl_plain_username")
    settings = {"bootstrap_timeout_ms": CONNECT_MS, **options, **secured}
    try:
        made_client: C = client_of(bootstrap_servers=bootstrap, kafka_client=kept, **settings)
        return made_client
    except (KafkaError, OSError) as error:
        for client in made:
            client.close()  # it would go on trying in a thread of its own
        raise unreachable(bootstrap, secured, error) from None
