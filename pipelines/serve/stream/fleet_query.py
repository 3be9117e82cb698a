"""The fast path's step for a fleet: a Structured Streaming query from `metrics` to `forecasts`, keyed by job.

One process serves as many jobs as it has time for; beyond that the same step runs inside keyed state, on as many
executors as there are. It is slower by a micro-batch, and has no store to read from; forecasts are the same.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.settings import Settings
from pipelines.kafka.spark import KEY, spark_options, topic_out

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

OUTPUT = "topic string, key string, value string"


def add_serving_step(
    source: DataFrame, settings: Settings, folder: Path, known: Collection[str], epoch: int
) -> DataFrame:
    """Add the serving step to a streaming DataFrame, with one keyed state per job.

    Args:
        source: columns key, value, partition and offset of `metrics`.
        settings: `training.step_s` is the seconds per window.
        folder: where `fleet_step.write_model_file` has put the models; every executor reads it.
        known: names of the jobs with a contract, fixed from here on; others are rejected.
        epoch: number that every forecast carries.

    Returns:
        Streaming DataFrame of strings topic ("forecasts" or "rejects"), key and value (JSON).
    """
    processor = _processor(settings.training.step_s, folder, frozenset(known), epoch)
    return source.groupBy("key").transformWithStateInPandas(processor, OUTPUT, "Update", "None")


def start_query(
    spark: Any, settings: Settings, checkpoint: Path, folder: Path, known: Collection[str]
) -> StreamingQuery:
    """Start the streaming query "serving" from `metrics` to `forecasts` and `rejects`, and return it running.

    It begins at the earliest record, or where its checkpoint stopped. Its forecasts carry epoch (number of the server)
    0. What fails in a micro-batch ends the query later: see its `exception()`.

    Args:
        spark: the session, with the Kafka package.
        settings: connection, topics and `training.step_s` (seconds per window).
        checkpoint: folder of the query's offsets and state, made if absent.
        folder: where the models are, see `add_serving_step`.
        known: names of the jobs with a contract, fixed from here on.

    Raises:
        BrokerError, SettingsError: no broker is set, or a security option that Java's client cannot follow.
        pyspark.errors.AnalysisException: the Kafka package is missing, or the query is not valid.
    """
    source = (
        spark.readStream.format("kafka")
        .options(**spark_options(settings.kafka))
        .option("subscribe", settings.kafka.topic("metrics"))
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr(KEY, "value", "partition", "offset")
    )
    served = add_serving_step(source, settings, folder, known, 0)
    messages = served.selectExpr(topic_out(settings.kafka), "key", "value")
    writer = messages.writeStream.queryName("serving").format("kafka")
    query: StreamingQuery = (
        writer.options(**spark_options(settings.kafka))
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .start()
    )
    return query


def _processor(step_s: float, folder: Path, known: frozenset[str], epoch: int) -> Any:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class ServingProcessor(StatefulProcessor):  # Spark calls by these names
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("kept", "kept binary")

        def handleInputRows(
            self, key: tuple[str], rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            """Serve one job's new records of a micro-batch in the order of partition and offset; update its state.

            Args:
                key: (the job's name,).
                rows: frames with columns key, value, partition and offset.
                timerValues: not used.

            Yields:
                One frame of string columns topic, key and value (JSON), to be sent to Kafka; it may be empty.

            Raises:
                msgspec.DecodeError, ModelSetError, SeriesError, OnlineError, OSError: state or model cannot be read,
                    or the model not started on the job's windows; Spark ends the query.
            """
            from pipelines.serve.stream.fleet_step import FleetStep  # seconds, which idle processes need not pay

            records = [record for frame in rows for record in frame.to_dict("records")]
            records.sort(key=lambda row: (row["partition"], row["offset"]))
            stored = self.state.get() if self.state.exists() else None
            before = None if stored is None else bytes(stored[0])
            after, messages = FleetStep(key[0], step_s, folder, known, epoch).process(before, records, time.time())
            self.state.update((after,))
            yield pd.DataFrame([(t, k, v.decode()) for t, k, v in messages], columns=["topic", "key", "value"])

        def close(self) -> None:
            pass

    return ServingProcessor()
