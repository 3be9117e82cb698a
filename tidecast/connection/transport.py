"""Kafka for the agent: clients with the options that a low, steady rate of small records needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kafka import KafkaConsumer, KafkaProducer
from kafka import __version__ as KAFKA_PYTHON
from kafka.errors import KafkaError

from tidecast.connection.reach import diagnose
from tidecast.connection.security import client_options

C = TypeVar("C")

TOPICS = (
    "events", "metrics", "forecasts", "decisions", "outcomes", "heartbeats", "contracts", "control", "rejects",
    "results", "windows", "replays", "replies", "wants", "pools",
)  # fmt: skip

CONNECT_MS = 10_000  # timeout of the first connection, ms; then `diagnose` finds out why
# After a broker is back, clients must find it within a second, not within the default half minute.
_COMMON: dict[str, Any] = {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 1000}


def producer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaProducer:
    """Connect a KafkaProducer: acks from all replicas, gzip, and retries for two minutes of broker outage.

    Records are sent at once (no linger), in order, those that come while an acknowledgement is awaited together; where
    one gets lost they may come twice.
    `options` are further ones of kafka-python; they win.

    Raises:
        tidecast.connection.reach.UnreachableError: as `connect`.
        ValueError: as `connect`.
    """
    settings = {
        "linger_ms": 0, "acks": "all", "delivery_timeout_ms": 120_000, "compression_type": "gzip", **_COMMON,
        # kafka-python's idempotent producer (3.0.12) sends nothing any more, for good, after it has given up a record
        # that it had sent, or after one that the broker refuses.
        "enable_idempotence": False, "max_in_flight_requests_per_connection": 1, **options,
    }  # fmt: skip
    return connect(KafkaProducer, bootstrap, security, **settings)


def consumer(bootstrap: str, security: Mapping[str, Any] | None = None, **options: Any) -> KafkaConsumer:
    """Connect a KafkaConsumer without a group and without commits; assign partitions or subscribe it yourself.

    `options` are further ones of kafka-python; they win. The broker holds an empty answer for Kafka's usual half a
    second, which delays no record: asked 20 times a second for nothing, it and the client took a tenth of a slow core.

    Raises:
        tidecast.connection.reach.UnreachableError: as `connect`.
        ValueError: as `connect`.
    """
    settings = {
        "group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest", **_COMMON, **options,
    }  # fmt: skip
    client = connect(KafkaConsumer, bootstrap, security, **settings)
    if KAFKA_PYTHON.startswith("3.0."):  # another release's insides may be others
        from tidecast.connection.header_names import take_any_name

        take_any_name(client)
    return client


def connect(kind: type[C], bootstrap: str, security: Mapping[str, Any] | None, **options: Any) -> C:
    """Create a kafka-python client, which has no topic created by asking for it, and wait for the broker's answer.

    Args:
        kind: KafkaProducer, KafkaConsumer or KafkaAdminClient.
        bootstrap: `host:port`, several separated by commas.
        security: security options under kafka-python's names; they win over `options`.
        **options: further options; `bootstrap_timeout_ms` is how long to wait, by default CONNECT_MS (10 s).

    Raises:
        tidecast.connection.reach.UnreachableError: no answer within `bootstrap_timeout_ms`, or a refusal; the failed
            client's network threads are closed. Finding out why takes up to 3 s more per address, and 3 s for TLS.
        ValueError: a security option is unknown, `ssl_check_hostname` is neither true nor false, or a port no number.
    """
    client_class: Any = kind
    network_class = client_class.DEFAULT_CONFIG["kafka_client"]
    networks: list[Any] = []

    def new_network(**configs: Any) -> Any:
        networks.append(network_class(**configs))
        # A `control` that a broker makes with its defaults forgets modes after a week. kafka-python's own option for
        # it does not reach its network (3.0.12).
        networks[-1].cluster.config["allow_auto_create_topics"] = False
        return networks[-1]

    secured = client_options(security or {})
    if unknown := sorted(set(secured) - set(client_class.DEFAULT_CONFIG)):
        raise ValueError(f"security: kafka-python has no option {unknown[0]!r}; its names are like sasl_plain_username")
    settings = {"bootstrap_timeout_ms": CONNECT_MS, **options, **secured}
    try:
        client: C = client_class(bootstrap_servers=bootstrap, kafka_client=new_network, **settings)
        return client
    except (KafkaError, OSError) as error:
        for network in networks:
            network.close()  # it would go on trying in a thread of its own
        raise diagnose(bootstrap, secured, error) from None
