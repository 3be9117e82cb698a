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
from pipelines.kafka.broker import KEY, spark_options, topic_out

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

OUTPUT = "topic string, key string, value string"


def forecasts(source: DataFrame, settings: Settings, folder: Path, known: Collection[str], epoch: int) -> DataFrame:
    """The query: key, value, partition and offset of `metrics` in; topic, key and value out."""
    processor = _processor(settings.training.step_s, folder, frozenset(known), epoch)
    return source.groupBy("key").transformWithStateInPandas(processor, OUTPUT, "Update", "None")


def start(spark: Any, settings: Settings, checkpoint: Path, folder: Path, known: Collection[str]) -> StreamingQuery:
    """Start the query on the broker; its checkpoint says where it goes on."""
    source = (
        spark.readStream.format("kafka")
        .options(**spark_options(settings.kafka))
        .option("subscribe", settings.kafka.topic("metrics"))
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr(KEY, "value", "partition", "offset")
    )
    found = forecasts(source, settings, folder, known, 0).selectExpr(topic_out(settings.kafka), "key", "value")
    writer = found.writeStream.queryName("serving").format("kafka")
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
            """One job's new records into its state; forecasts and rejects out of it, as rows for Kafka."""
            from pipelines.serve.stream.fleet_step import FleetStep  # seconds, which idle processes need not pay

            found = [record for frame in rows for record in frame.to_dict("records")]
            found.sort(key=lambda row: (row["partition"], row["offset"]))
            held = self.state.get() if self.state.exists() else None
            before = None if held is None else bytes(held[0])
            after, out = FleetStep(key[0], step_s, folder, known, epoch).take(before, found, time.time())
            self.state.update((after,))
            yield pd.DataFrame([(t, k, v.decode()) for t, k, v in out], columns=["topic", "key", "value"])

        def close(self) -> None:
            pass

    return ServingProcessor()
