"""The autoscaler: a Structured Streaming query from `metrics` and `forecasts` to `decisions`, keyed by job.

Run it as `tidecast autoscale`. One query serves every job that has a contract, as its file says while the query runs.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from configs.policies import BY_PEAKS, LEARNED
from configs.settings import Settings
from models.policy.catalogue import entry
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.signing import Signer
from pipelines.kafka.spark import HEADERS, KEY, spark_options, topic_in, topic_out
from pipelines.kafka.topics import create_topics
from pipelines.scale.alone import refuse_another
from pipelines.scale.artifact_sync import ArtifactSync, SyncedArtifacts
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.contracts import AcceptedContracts, accepted_file, make_contract_watch
from pipelines.scale.grants import Grants, grants_file
from pipelines.scale.learned import NOTHING, Learned, agent_source, rehearsal_source
from pipelines.scale.pools import PoolDivision
from pipelines.scale.remedies import SLOW_WORKER, advice_on, remedy_of
from pipelines.scale.stateful import add_scaling_step, make_stateful_processor
from pipelines.spark.query_session import query_session, spread_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S, SET_BACK_S = 1.0, 5.0  # seconds between two reads of the contracts' folder; a clock set back by more counts
LOOK_AT_QUERY_S, TRIES = 0.2, 5  # seconds between two looks at the query; its starts at most, where workers are slow
OUTCOMES = 200  # newest ones that a new query learns the lead time from


def start_query(
    spark: SparkSession, settings: Settings, checkpoint: Path, learned: Learned = NOTHING
) -> StreamingQuery:
    """Start the streaming query that reads `metrics` and forecasts and writes `decisions`; returns while it runs.

    It resumes from the checkpoint; without one it begins at the newest record of each partition. Forecasts come from
    the topic, or from the fast path's LMDB store where `serving.path` is "fast".

    Args:
        spark: a session with the Kafka connector.
        settings: policy, mode, trigger, broker and store.
        checkpoint: folder of the query's state; `<checkpoint>.contracts.json` beside it holds the accepted contracts
            (each job's latency target and executor bounds).
        learned: synced agents and calibrators.

    Raises:
        BrokerError: no broker, or a topic is not there.
        kafka.errors.KafkaTimeoutError: the broker stopped answering when the offsets were looked up.
        SettingsError, ValueError: a security option that Kafka's Java client lacks; or that kafka-python lacks.
        pyspark.errors.PySparkException: Spark refuses trigger or checkpoint.
    """
    scaling, store = settings.autoscaler, None
    if settings.serving.path == "fast":
        store = StoreForecasts(settings.store_dir, settings.training.step_s)
    accepted = AcceptedContracts(accepted_file(checkpoint))
    processor = make_stateful_processor(
        accepted,
        scaling.policy,
        scaling.mode,
        learned,
        store,
        Signer.of(settings.kafka),
        Grants(grants_file(checkpoint)),
    )
    source = (
        spark.readStream.format("kafka")
        .options(**spark_options(settings.kafka))
        .option("subscribe", ",".join(map(settings.kafka.topic, _topics(settings))))
        .option("startingOffsets", _newest(settings))
        # Metrics that have left the topic are too old to decide on; failing over them would stop all scaling.
        .option("failOnDataLoss", "false")
        .option("kafka.fetch.max.wait.ms", "20")
        .load()
        .selectExpr(KEY, "value", topic_in(settings.kafka), "partition", "offset")
    )
    return (
        add_scaling_step(source, processor)
        .selectExpr(topic_out(settings.kafka), "key", "value", HEADERS)
        .writeStream.queryName("autoscaler")
        .format("kafka")
        .options(**spark_options(settings.kafka))
        .option("kafka.compression.type", "gzip")  # of the four the one that kafka-python reads by itself
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .trigger(processingTime=scaling.trigger)
        .start()
    )


def _topics(settings: Settings) -> tuple[str, ...]:
    """What is followed; the fast path's forecasts are read in its store."""
    always = ("metrics", "outcomes", "replays")
    return always if settings.serving.path == "fast" else (*always, "forecasts", "heartbeats")


def _newest(settings: Settings) -> str:
    """From the newest record of each partition on: the last forecast is known at once, and the first batch warms up.

    Of the outcomes more, for what earlier raises took is what the lead time is learned from.
    """
    starts = {}
    for topic in _topics(settings):
        offsets, back = topic_offsets(settings.kafka, topic), OUTCOMES if topic == "outcomes" else 1
        starts[settings.kafka.topic(topic)] = {str(p): max(first, end - back) for p, (first, end) in offsets.items()}
    return json.dumps(starts)


def run_autoscaler(settings: Settings, checkpoint: Path) -> None:
    """Run the autoscaler until SIGTERM or ctrl-C; only in the main thread, because it sets signal handlers.

    Creates missing topics, accepts contracts (each job's latency target and executor bounds; the folder is read every
    LOOK_S, 1 s), divides pools, brings learned agents and rehearsals to the workers (every `autoscaler.alias_poll_s`
    s), and prints one line per event: `autoscaler: ready` after the first micro-batch.

    Args:
        settings: policy, broker, contracts and registry.
        checkpoint: folder of the query's state; contracts and learned artifacts are kept beside it, under its name with
            the endings `.contracts.json`, `.pools.json`, `.agents` and `.rehearsals`.

    Raises:
        SystemExit: the query failed, or Spark refuses its trigger or its checkpoint; the message holds the error.
        BrokerError: no broker, or topics cannot be created.
        AnotherAutoscalerError: one decides on these topics already.
        kafka.errors.KafkaError: the broker refuses topics, or stops answering before the query runs
            (KafkaTimeoutError).
        JavaError, JarsError: Spark cannot start.
        SpreadError: the checkpoint is of another number of cores, and Spark cannot spread it.
        SettingsError, ValueError: a security option that Kafka's Java client lacks; or that kafka-python lacks; the
            file of signing keys is wrong.
        OSError: the file of accepted contracts cannot be written.
    """
    policy = settings.autoscaler.policy
    sources = {
        **({"agents": agent_source(settings)} if policy in LEARNED else {}),
        **({"rehearsals": rehearsal_source(settings)} if policy in BY_PEAKS or entry(policy).stricter else {}),
    }
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signer = Signer.of(settings.kafka)
    signer.check_file()
    create_topics(settings.kafka)
    accepted = AcceptedContracts(accepted_file(checkpoint))
    watch = make_contract_watch(settings, accepted)
    _report(watch.update())
    division = PoolDivision(settings, accepted.all, Grants(grants_file(checkpoint)))
    _report(division.tick())  # before the first decision, so that no job has more than its pool gives it
    ticks, learned = [watch.update, division.tick], {}
    for name, source in sources.items():
        _report([f"looking for every job's {source.what}; until one has come, decisions are made without it"])
        folder = checkpoint.with_name(f"{checkpoint.name}.{name}")
        ticks.append(ArtifactSync(source, accepted.all, folder, settings.autoscaler.alias_poll_s).sync)
        learned[name] = SyncedArtifacts(folder, source.read)
    for tick in ticks:
        threading.Thread(target=_repeat, args=(tick, stop), daemon=True).start()
    # The JVM ignores SIGTERM: where all processes of the command get it, this one ends the query first.
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    with ThreadPoolExecutor(1) as pool:
        alone = pool.submit(refuse_another, settings.kafka)  # while the JVM starts
        spark = query_session("autoscaler", settings, settings.autoscaler.cores, settings.autoscaler.master)
    if not stop.is_set():
        alone.result()
        goes_on = (checkpoint / "offsets").is_dir()
        _report(spread_state(spark, checkpoint, settings.autoscaler.cores, "autoscaler.cores"))
        remedy = partial(remedy_of, checkpoint) if goes_on else str
        run_until(stop, lambda: start_query(spark, settings, checkpoint, Learned(**learned)), remedy)
    spark.stop()


def run_until(stop: threading.Event, start: Callable[[], StreamingQuery], remedy: Callable[[], str] = str) -> None:
    """Run a query until `stop` is set, and say when it is ready; what `remedy` says is added where it never was.

    Before its first micro-batch Spark waits ten seconds, a constant of its own, for a Python worker to import what it
    needs; where all cores are busy that is not enough, and it is started again, at most TRIES times in all. Where the
    clock is set back, too: Spark would sleep until the wall time of the next micro-batch has come.

    Raises:
        SystemExit: Spark does not start it; or it failed for another reason, after it was ready, or TRIES times. The
            message holds the error.
    """
    query, tries, ready, ahead_s = _started(start, remedy), 1, False, time.time() - time.monotonic()
    while not stop.wait(LOOK_AT_QUERY_S):
        before_s, ahead_s = ahead_s, time.time() - time.monotonic()
        if before_s - ahead_s > SET_BACK_S and query.isActive:
            _report([f"the clock was set back by {before_s - ahead_s:.0f} s; the query is started again"])
            query.stop()
            query, ready = _started(start, remedy), False
        if query.isActive:
            if not ready and query.lastProgress is not None:
                ready = True
                _report(["ready"])
            continue
        failure = query.exception()
        if ready or tries == TRIES or SLOW_WORKER not in str(failure):
            raise SystemExit(f"the autoscaler's query failed: {failure}{'' if ready else advice_on(failure, remedy)}")
        tries += 1
        _report([f"a Python worker took longer to start than Spark waits; try {tries} of {TRIES}"])
        query = _started(start, remedy)
    query.stop()


def _started(start: Callable[[], StreamingQuery], remedy: Callable[[], str]) -> StreamingQuery:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return start()
    except (PySparkException, Py4JJavaError) as error:
        raise SystemExit(f"the autoscaler's query does not start: {error}{advice_on(error, remedy)}") from None


def _repeat(tick: Callable[[], list[str]], stop: threading.Event) -> None:
    """Tick until the end; what goes wrong in one tick is reported and does not end the next."""
    before = ""
    while not stop.wait(LOOK_S):
        try:
            _report(tick())
        except Exception as error:
            if (problem := f"{type(error).__name__}: {error}") != before:
                _report([problem])
            before = problem


def _report(lines: list[str]) -> None:
    for line in lines:
        print(f"autoscaler: {line}", flush=True)
