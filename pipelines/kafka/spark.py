"""Kafka as Spark's source and sink: connection options, and the prefix of topic names in SQL."""

from __future__ import annotations

from collections.abc import Mapping

from configs.sections import Kafka
from pipelines.kafka.connection import bootstrap_address
from pipelines.kafka.security import java_options
from tidecast.connection.signing import HEADER

KEY = "coalesce(make_valid_utf8(CAST(key AS STRING)), '') AS key"
"""Spark SQL for the column `key` as text; invalid bytes are replaced and null becomes '', so no record is lost."""


HEADERS = (
    f"CASE WHEN signature IS NOT NULL THEN array(named_struct('key', '{HEADER}', 'value', CAST(signature AS BINARY))) "
    "END AS headers"
)
"""Spark SQL for the column `headers` of a Kafka sink, from the column `signature` (text; null: none)."""


def spark_options(kafka: Kafka) -> Mapping[str, str]:
    """Return the connection (`kafka.bootstrap.servers` and security) as options of Spark's Kafka source and sink.

    Raises:
        SettingsError: a security option that Java's client cannot follow.
        BrokerError: no broker is set.
    """
    secured = {f"kafka.{name}": value for name, value in java_options(kafka.security).items()}
    return {"kafka.bootstrap.servers": bootstrap_address(kafka), **secured}


def topic_in(kafka: Kafka) -> str:
    """Return Spark SQL that takes the prefix off the column `topic` of a Kafka source."""
    return f"substr(topic, {len(kafka.prefix) + 1}) AS topic"


def topic_out(kafka: Kafka) -> str:
    """Return Spark SQL that puts the prefix on the column `topic` for a Kafka sink."""
    return f"concat('{kafka.prefix}', topic) AS topic"
