"""The autoscaler: a Structured Streaming query from `metrics` and `forecasts` to `decisions`, keyed by job.

Run it as `tidecast autoscale`. One query serves every job that has a contract.
"""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from configs.contract import load_contracts
from configs.settings import Settings
from pipelines.broker import create_topics, offsets, spark_options
from pipelines.scale.processor import OUTPUT, stateful_processor
from pipelines.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start(spark: SparkSession, settings: Settings, checkpoint: Path) -> StreamingQuery:
    """Start the query; it begins at the newest records, or where its checkpoint stopped."""
    scaling = settings.autoscaler
    processor = stateful_processor(load_contracts(settings.contracts_dir), scaling.policy, scaling.mode)
    source = (
        spark.readStream.format("kafka")
        .options(**spark_options(settings.kafka))
        .option("subscribe", "metrics,forecasts")
        .option("startingOffsets", _newest(settings))
        # Metrics that have left the topic are too old to decide on; failing over them would stop all scaling.
        .option("failOnDataLoss", "false")
        .option("kafka.fetch.max.wait.ms", "20")
        .load()
        .selectExpr("CAST(key AS STRING) key", "CAST(value AS STRING) value", "topic", "partition", "offset")
        .where("key IS NOT NULL")
    )
    decisions = source.groupBy("key").transformWithStateInPandas(processor, OUTPUT, "Update", "ProcessingTime")
    return (
        decisions.writeStream.queryName("autoscaler")
        .format("kafka")
        .options(**spark_options(settings.kafka))
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .trigger(processingTime=scaling.trigger)
        .start()
    )


def _newest(settings: Settings) -> str:
    """From the newest record of each partition on: the last forecast is known at once, and the first batch warms up."""
    topics = ("metrics", "forecasts")
    ends = {t: {str(p): max(first, end - 1) for p, (first, end) in offsets(settings.kafka, t).items()} for t in topics}
    return json.dumps(ends)


def run(settings: Settings, checkpoint: Path) -> None:
    """Run until SIGTERM or ctrl-C; a failed query ends the process with its error."""
    create_topics(settings.kafka)
    spark = local_session("autoscaler", cores=1)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    query = start(spark, settings, checkpoint)
    ready = False
    while not stop.wait(0.2) and query.isActive:
        if not ready and query.lastProgress is not None:
            ready = True
            print("autoscaler: ready", flush=True)
    error = query.exception()
    query.stop()
    spark.stop()
    if error is not None:
        raise SystemExit(f"the autoscaler's query failed: {error}")
