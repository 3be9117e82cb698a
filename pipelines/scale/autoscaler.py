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
from configs.errors import SettingsError
from configs.policies import LEARNED
from configs.settings import Settings
from pipelines.broker import create_topics, offsets, spark_options
from pipelines.scale.agents import Agents, Courier, Source
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.processor import OUTPUT, stateful_processor
from pipelines.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start(spark: SparkSession, settings: Settings, checkpoint: Path, agents: Agents | None = None) -> StreamingQuery:
    """Start the query; it begins at the newest records, or where its checkpoint stopped.

    Forecasts come off their topic, or out of the fast path's store where that serves.
    """
    scaling, store = settings.autoscaler, None
    if settings.serving.path == "fast":
        store = StoreForecasts(settings.store_dir, settings.training.step_s)
    processor = stateful_processor(load_contracts(settings.contracts_dir), scaling.policy, scaling.mode, agents, store)
    source = (
        spark.readStream.format("kafka")
        .options(**spark_options(settings.kafka))
        .option("subscribe", ",".join(_topics(settings)))
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


def _topics(settings: Settings) -> tuple[str, ...]:
    """What is followed; the fast path's forecasts are read in its store."""
    return ("metrics",) if settings.serving.path == "fast" else ("metrics", "forecasts")


def _newest(settings: Settings) -> str:
    """From the newest record of each partition on: the last forecast is known at once, and the first batch warms up."""
    return json.dumps({
        t: {str(p): max(first, end - 1) for p, (first, end) in offsets(settings.kafka, t).items()}
        for t in _topics(settings)
    })  # fmt: skip


def _agents(settings: Settings, folder: Path, source: Source | None) -> tuple[Courier | None, Agents | None]:
    """Who brings a learned policy's agents and where they lie, once looked for; nothing for other policies."""
    scaling = settings.autoscaler
    if scaling.policy not in LEARNED:
        return None, None
    if source is None:
        raise SettingsError(f"autoscaler.policy={scaling.policy!r} needs a source of agents; give `run` one.")
    courier = Courier(source, load_contracts(settings.contracts_dir).values(), folder, scaling.alias_poll_s)
    for said in courier.tick():
        print(f"autoscaler: {said}", flush=True)
    return courier, Agents(folder, source.read)


def run(settings: Settings, checkpoint: Path, source: Source | None = None) -> None:
    """Run until SIGTERM or ctrl-C; a failed query ends the process with its error.

    Args:
        settings: policy, broker and contracts.
        checkpoint: where the query keeps its state; the agents of a learned policy are kept beside it.
        source: where these come from.

    Raises:
        SettingsError: a learned policy without a source.
    """
    courier, agents = _agents(settings, checkpoint.with_name(f"{checkpoint.name}.agents"), source)
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
    query = start(spark, settings, checkpoint, agents)
    ready = False
    while not stop.wait(0.2) and query.isActive:
        for said in courier.tick() if courier else ():
            print(f"autoscaler: {said}", flush=True)
        if not ready and query.lastProgress is not None:
            ready = True
            print("autoscaler: ready", flush=True)
    error = query.exception()
    query.stop()
    spark.stop()
    if error is not None:
        raise SystemExit(f"the autoscaler's query failed: {error}")
