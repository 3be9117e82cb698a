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
from pipelines.kafka.broker import create_topics, offsets, spark_options
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.courier import Brought, Courier, Source
from pipelines.scale.processor import NOTHING, OUTPUT, Learned, stateful_processor
from pipelines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start(spark: SparkSession, settings: Settings, checkpoint: Path, learned: Learned = NOTHING) -> StreamingQuery:
    """Start the query; it begins at the newest records, or where its checkpoint stopped.

    Forecasts come off their topic, or out of the fast path's store where that serves.
    """
    scaling, store = settings.autoscaler, None
    if settings.serving.path == "fast":
        store = StoreForecasts(settings.store_dir, settings.training.step_s)
    processor = stateful_processor(load_contracts(settings.contracts_dir), scaling.policy, scaling.mode, learned, store)
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


def _brought(settings: Settings, folder: Path, source: Source | None) -> tuple[list[Courier], Brought | None]:
    """Who brings what a source has, and where it lies, once looked for; nobody without a source."""
    if source is None:
        return [], None
    contracts = load_contracts(settings.contracts_dir).values()
    courier = Courier(source, contracts, folder, settings.autoscaler.alias_poll_s)
    _tell(courier)
    return [courier], Brought(folder, source.read)


def _tell(courier: Courier) -> None:
    for said in courier.tick():
        print(f"autoscaler: {said}", flush=True)


def run(settings: Settings, checkpoint: Path, agents: Source | None = None, ears: Source | None = None) -> None:
    """Run until SIGTERM or ctrl-C; a failed query ends the process with its error.

    Args:
        settings: policy, broker and contracts.
        checkpoint: where the query keeps its state; what the sources have is kept beside it.
        agents: where those of a learned policy come from.
        ears: where the peaks that policies hear come from; without, they hear the forecaster's own quantiles.

    Raises:
        SettingsError: a learned policy without a source of agents.
    """
    if agents is None and settings.autoscaler.policy in LEARNED:
        raise SettingsError(f"autoscaler.policy={settings.autoscaler.policy!r} needs agents; give `run` their source.")
    found = [_brought(settings, checkpoint.with_name(f"{checkpoint.name}.{name}"), source)
             for name, source in (("agents", agents), ("ears", ears))]  # fmt: skip
    couriers, learned = [courier for some, _ in found for courier in some], Learned(*(here for _, here in found))
    create_topics(settings.kafka)
    # Inherited by the JVM: told to all processes of the command, the word is this one's, which ends the query first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spark = local_session("autoscaler", cores=1)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    query = start(spark, settings, checkpoint, learned)
    ready = False
    while not stop.wait(0.2) and query.isActive:
        for courier in couriers:
            _tell(courier)
        if not ready and query.lastProgress is not None:
            ready = True
            print("autoscaler: ready", flush=True)
    error = query.exception()
    query.stop()
    spark.stop()
    if error is not None and not stop.is_set():  # told to end, a batch may lose its workers first
        raise SystemExit(f"the autoscaler's query failed: {error}")
