"""The serving step for a fleet: a Structured Streaming query from `metrics` to `forecasts`, keyed by job.

One process serves as many jobs as it has time for; beyond that the same step runs inside keyed state, on as many
executors as there are. It is slower by a micro-batch, and has no store to read from; forecasts are the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.settings import Settings
from pipelines.kafka.spark import KEY, follow_topics, spark_options, topic_out
from pipelines.spark.checkpoint.operator_name import name_for_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

OUTPUT = "topic string, key string, value string"


def add_serving_step(
    source: DataFrame, settings: Settings, folder: Path, known: Collection[str], epoch: int, oldest_s: float = math.inf
) -> DataFrame:
    """Add the serving step to a streaming DataFrame, with one keyed state per job.

    Args:
        source: columns key, value, partition and offset of `metrics`.
        settings: `training.step_s` is the seconds per window.
        folder: where `fleet_step.write_model_file` has put the models; every executor reads it.
        known: names of the jobs with a contract, as every executor sees them; others are rejected.
        epoch: number that every forecast carries.
        oldest_s: wall seconds; nothing is forecast of a record that is older.

    Returns:
        Streaming DataFrame of strings topic ("forecasts", "heartbeats" or "rejects"), key and value (JSON).
    """
    processor = _processor(settings.training.step_s, folder, known, epoch, oldest_s)
    return source.groupBy("key").transformWithState(processor, OUTPUT, "Update", "None")


def start_query(
    spark: Any, settings: Settings, checkpoint: Path, folder: Path, known: Collection[str], epoch: int = 0,
    since_s: float = 0.0, oldest_s: float = math.inf, trigger_s: float = 0.0,
) -> StreamingQuery:  # fmt: skip
    """Start the streaming query "serving" from `metrics` to `forecasts`, `heartbeats` and `rejects`; return it running.

    It goes on where its checkpoint stopped. What fails in a micro-batch ends the query later: see its `exception()`.

    Args:
        spark: the session, with the Kafka package.
        settings: connection, topics and `training.step_s` (seconds per window).
        checkpoint: folder of the query's offsets and state, made if absent.
        folder: where the models are, see `add_serving_step`.
        known: names of the jobs with a contract, as every executor sees them.
        epoch: number that every forecast carries.
        oldest_s: wall seconds; nothing is forecast of a record that is older.
        since_s: wall time (epoch s) of the first record that it reads without a checkpoint.
        trigger_s: seconds between micro-batches; 0: one after the other.

    Raises:
        BrokerError, SettingsError: no broker is set, or a security option that Java's client cannot follow.
        OSError: the checkpoint cannot be read or written.
        pyspark.errors.AnalysisException: the Kafka package is missing, or the query is not valid.
    """
    source = (
        follow_topics(spark, settings.kafka, ["metrics"])
        .option("startingTimestamp", str(round(since_s * 1000)))
        .option("startingOffsetsByTimestampStrategy", "latest")  # of a partition without a record since then
        .load()
        .selectExpr(KEY, "value", "partition", "offset")
    )
    served = add_serving_step(source, settings, folder, known, epoch, oldest_s)
    messages = served.selectExpr(topic_out(settings.kafka), "key", "value")
    writer = messages.writeStream.queryName("serving").format("kafka")
    name_for_rows(checkpoint)
    query: StreamingQuery = (
        writer.options(**spark_options(settings.kafka))
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .trigger(processingTime=f"{trigger_s} seconds")
        .start()
    )
    return query


def _processor(step_s: float, folder: Path, known: Collection[str], epoch: int, oldest_s: float) -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    message = Row("topic", "key", "value")

    class ServingProcessor(StatefulProcessor):  # Spark calls by these names
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("kept", "kept binary")

        def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
            """Serve one job's new records of a micro-batch by partition and offset; update its state, if it has any.

            Args:
                key: (the job's name,).
                rows: with key, value, partition and offset.
                timerValues: not used.

            Yields:
                Rows of OUTPUT, to be sent to Kafka.
            """
            from pipelines.serve.stream.fleet_step import TOLD, FleetStep  # seconds, which idle processes need not pay

            records = sorted((row.asDict() for row in rows), key=lambda row: (row["partition"], row["offset"]))
            stored = self.state.get()
            before = None if stored is None else bytes(stored[0])
            step = FleetStep(key[0], step_s, folder, known, epoch, oldest_s, TOLD)
            after, messages = step.process(before, records, time.time())
            if after is not None:
                self.state.update((after,))
            elif stored is not None:  # of an earlier release, which kept one for every key
                self.state.clear()
            for topic, name, value in messages:
                yield message(topic, name, value.decode())

        def close(self) -> None:
            pass

    return ServingProcessor()
