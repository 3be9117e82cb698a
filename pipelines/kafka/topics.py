"""Kafka's topics as they are administered: created, identified, measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kafka import KafkaAdminClient, errors
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from configs.sections import Kafka
from pipelines.kafka.connection import BrokerError, TopicError, answered, connect_client, no_such_topic
from tidecast.connection.transport import TOPICS, connect

_HOUR_MS = 3_600_000
_KNOWN_S = 30
_FOR_GOOD = ("control", "contracts")
"""Topics of which each key keeps its newest record; not `results`, which may be somebody else's where it exists."""


def create_topics(kafka: Kafka) -> None:
    """Create Tidecast's missing topics and wait up to 30 s until a broker leads each of their partitions.

    `events` and `results` get `event_partitions` partitions, the others one; each has `replication` copies and its
    hours of `retention_h`, or is compacted where it has none. Existing topics are left as they are; stderr names those
    that drop after a while what has to stay, as far as this user may ask.

    Raises:
        BrokerError: no broker is set or answers within 10 s, or refuses, e.g. for want of rights or brokers; or topics
            have no leader after 30 s (they stay created).
        SettingsError: as `connect_client`.
    """
    with _admin(kafka) as admin:
        existing = set(admin.list_topics())
        wanted = [
            NewTopic(
                name=kafka.topic(topic),
                num_partitions=kafka.event_partitions if topic in ("events", "results") else 1,
                replication_factor=kafka.replication,
                topic_configs=_configuration(kafka, topic),
            )
            for topic in TOPICS
            if kafka.topic(topic) not in existing
        ]
        if wanted:
            _create(admin, kafka, wanted)
        _name_forgetful(admin, kafka, [kafka.topic(topic) for topic in _FOR_GOOD if kafka.topic(topic) in existing])


def create_topic(kafka: Kafka, topic: str) -> None:
    """Create a topic beside Tidecast's own where it is missing, as `events` is, and wait until its partitions are led.

    Raises:
        BrokerError, SettingsError: as `create_topics`.
    """
    with _admin(kafka) as admin:
        name = kafka.topic(topic)
        if name not in set(admin.list_topics()):
            wanted = NewTopic(
                name=name, num_partitions=kafka.event_partitions, replication_factor=kafka.replication,
                topic_configs=_configuration(kafka, "events"),
            )  # fmt: skip
            _create(admin, kafka, [wanted])


def _create(admin: KafkaAdminClient, kafka: Kafka, wanted: list[NewTopic]) -> None:
    """Create topics, of which kafka-python's own retry may have made some, and wait until their partitions are led."""
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        error = errors.for_code(topic["error_code"])
        if issubclass(error, errors.NoError | errors.TopicAlreadyExistsError):
            continue
        said = f"{topic['name']}: {topic.get('error_message') or error.description}".rstrip(".")
        if error.retriable or issubclass(error, errors.AuthorizationError):
            raise error(said)
        settings = f"kafka.replication={kafka.replication}"
        remedy = "Set it to the number of brokers at most."
        if error is errors.InvalidTopicError:
            settings = f"kafka.prefix={kafka.prefix!r}"
            remedy = "Choose another one: Kafka takes '.' and '_' for the same in names of its metrics."
        elif error is not errors.InvalidReplicationFactorError:
            settings += f", kafka.event_partitions={kafka.event_partitions}, kafka.retention_h"
            remedy = "Set them to what its rules allow, or have the topics made: those that exist are left as they are."
        raise BrokerError(f"{settings}: the broker at {kafka.bootstrap} does not create topic {said}. {remedy}")
    _await(admin, [topic.name for topic in wanted])


def _name_forgetful(admin: KafkaAdminClient, kafka: Kafka, names: list[str]) -> None:
    """Say which topics of others' making drop a mode that somebody gave, or a contract, once it is old."""
    for name, options in _options(admin, names).items():
        policy = options.get("cleanup.policy", "compact")
        if policy != "compact":
            print(
                f"topic {name}: cleanup.policy={policy} drops what is old, such as a job's mode or a contract; it has "
                f"to be compact: kafka-configs.sh --bootstrap-server {kafka.bootstrap} --entity-type topics "
                f"--entity-name {name} --alter --add-config cleanup.policy=compact",
                file=sys.stderr,
                flush=True,
            )


def _options(admin: KafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    """The options of topics by name; none of one of which this user may not ask."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found = admin.describe_configs(asked, config_filter="all")["topic"] if asked else {}
    return {name: {option: told["value"] for option, told in found[name].items()} for name in names}


def _await(admin: KafkaAdminClient, names: list[str]) -> None:
    """Wait until a broker knows of topics that the controller has created: it hears of them later."""
    until = time.monotonic() + _KNOWN_S
    while not all(
        topic["error_code"] == 0 and topic["partitions"] and all(p["leader_id"] >= 0 for p in topic["partitions"])
        for topic in admin.describe_topics(names)
    ):
        if time.monotonic() > until:
            raise BrokerError(
                f"topics {', '.join(names)}: created, but after {_KNOWN_S} s no broker leads all of their partitions. "
                "See that all brokers run, then start again: topics that exist are left as they are."
            )
        time.sleep(0.05)


def _configuration(kafka: Kafka, topic: str) -> dict[str, str]:
    """A topic's retention; segments close often enough for it, because an open one is neither cut nor compacted."""
    hours = getattr(kafka.retention_h, topic, None)
    if hours is None:
        return {"cleanup.policy": "compact", "segment.ms": str(6 * _HOUR_MS)}
    kept = int(hours * _HOUR_MS)
    return {"retention.ms": str(kept), "segment.ms": str(min(max(kept // 2, 600_000), 24 * _HOUR_MS))}


def topic_id(kafka: Kafka, topic: str) -> str:
    """Return the id that a topic got at its creation; a topic of the same name that is made anew has another.

    Raises:
        TopicError: no such topic, or this user may not see it.
        BrokerError, SettingsError: as `connect_client`, or the broker refuses.
    """
    with _admin(kafka) as admin:
        (found,) = admin.describe_topics([kafka.topic(topic)])
        error = errors.for_code(found["error_code"])
        if issubclass(error, errors.AuthorizationError):
            raise error(kafka.topic(topic))
    if error is errors.UnknownTopicOrPartitionError:  # its id is one of noughts
        raise TopicError(no_such_topic(kafka.topic(topic)))
    return str(found["topic_id"])


def retention_s(kafka: Kafka, name: str) -> float | None:
    """Return for how long a topic surely keeps its records, seconds; None: that is not known.

    It is not where the topic drops records by its size too, or none by their age, or where this user may not ask.

    Args:
        kafka: the brokers and their security.
        name: the whole name.

    Raises:
        BrokerError, SettingsError: as `connect_client`, or the broker refuses.
    """
    with _admin(kafka) as admin:
        options = _options(admin, [name])[name]
    kept_ms, most_bytes = (int(options.get(f"retention.{unit}", -1)) for unit in ("ms", "bytes"))
    if "delete" not in options.get("cleanup.policy", "") or most_bytes >= 0 or kept_ms < 0:
        return None
    return kept_ms / 1000


@contextmanager
def _admin(kafka: Kafka) -> Iterator[KafkaAdminClient]:
    """A client for administration; what the broker refuses it is a BrokerError."""
    client: KafkaAdminClient = connect_client(partial(connect, KafkaAdminClient), kafka)
    try:
        with answered(kafka):
            yield client
    finally:
        client.close()
