"""Kafka as Spark's source and sink: connection options, and the prefix of topic names in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from configs.sections import Kafka
from pipelines.kafka.connection import bootstrap_address
from pipelines.kafka.security import java_options
from tidecast.connection.signing import HEADER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

BATCH_MOST = 1_000_000
"""Records of a micro-batch of `follow_topics`: what 1,300 jobs send in ten minutes, so that after a shorter stop the
newest records are in the first batch, and nothing is decided of what is over.

A query that was stopped for two weeks finds millions: as one batch they fill a worker's memory, and nobody hears of the
query until all of them are through.
"""
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


def follow_topics(spark: SparkSession, kafka: Kafka, topics: Iterable[str]) -> DataStreamReader:
    """Return Spark's Kafka source of topics as a query follows them that goes on after a stop, however long it was.

    At most BATCH_MOST (1,000,000) records make a micro-batch. What has left a topic meanwhile is passed over: it is too
    old to act on, and failing over it would end the query for all jobs.

    Raises:
        SettingsError, BrokerError: as `spark_options`.
    """
    return (
        spark.readStream.format("kafka")
        .options(**spark_options(kafka))
        .option("subscribe", ",".join(map(kafka.topic, topics)))
        .option("maxOffsetsPerTrigger", str(BATCH_MOST))
        .option("failOnDataLoss", "false")
    )


def topic_in(kafka: Kafka) -> str:
    """Return Spark SQL that takes the prefix off the column `topic` of a Kafka source."""
    return f"substr(topic, {len(kafka.prefix) + 1}) AS topic"


def topic_out(kafka: Kafka) -> str:
    """Return Spark SQL that puts the prefix on the column `topic` for a Kafka sink."""
    return f"concat('{kafka.prefix}', topic) AS topic"
