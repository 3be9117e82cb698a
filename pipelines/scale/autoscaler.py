"""The autoscaler: a Structured Streaming query from `metrics` and `forecasts` to `decisions`, keyed by job.

Run it as `tidecast autoscale`. One query serves every job that has a contract, as its file says while the query runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from configs.errors import SettingsError
from configs.settings import Settings
from models.policy.live.learned_lead import OUTCOMES
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.clocks import wait_while_behind
from pipelines.kafka.signing import Signer
from pipelines.kafka.spark import HEADERS, KEY, follow_topics, spark_options, topic_in, topic_out
from pipelines.kafka.topics import create_topics
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.beside import END_S, BesideQuery, ExecutorsKeys, begin, begin_to_repeat, report, warm_up_registry
from pipelines.scale.contracts import AcceptedContracts, accepted_file
from pipelines.scale.learned import NOTHING, Learned
from pipelines.scale.other_autoscaler import another_autoscaler
from pipelines.scale.pool.grants import Grants, grants_file
from pipelines.scale.remedies import SLOW_WORKER, advice_on, remedy_of
from pipelines.scale.stateful import add_scaling_step, make_stateful_processor
from pipelines.scale.turn import TRIES, Turn, stand_by
from pipelines.signals import event_of_signals, keep_sigterm_from_jvm
from pipelines.spark.checkpoint.operator_name import name_for_frames, name_for_rows
from pipelines.spark.query_session import query_session, spread_state
from pipelines.spark.wall_clock import ClockWatch, jvm_clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_AT_QUERY_S = 0.2  # seconds between two looks at the query
REHEARSED_EVERY = "30 seconds"  # Spark ends a Python worker that was idle for a minute


def start_query(
    spark: SparkSession, settings: Settings, checkpoint: Path, learned: Learned = NOTHING, rehearsal: Path | None = None
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
        rehearsal: folder for the state of a query that decides on the newest records of all jobs, and whose decisions
            go nowhere: what the first micro-batch waits for is there then. None: the query itself.

    Raises:
        BrokerError: no broker, or a topic is not there.
        SettingsError, ValueError: a security option that Kafka's Java client lacks; or that kafka-python lacks.
        pyspark.errors.PySparkException: Spark refuses trigger or checkpoint.
        OSError: the checkpoint cannot be read or written.
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
        follow_topics(spark, settings.kafka, _topics(settings))
        .option("startingOffsets", "latest" if rehearsal is None and resumes_from(checkpoint) else _newest(settings))
        .option("kafka.fetch.max.wait.ms", "20")
        .load()
        .selectExpr(KEY, "value", topic_in(settings.kafka), "partition", "offset")
    )
    decided = add_scaling_step(source, processor).selectExpr(topic_out(settings.kafka), "key", "value", HEADERS)
    writer = decided.writeStream.outputMode("update")
    if rehearsal is not None:
        writer = writer.format("noop").option("checkpointLocation", str(rehearsal))
        return writer.trigger(processingTime=REHEARSED_EVERY).start()
    name_for_rows(checkpoint)
    return (
        writer.queryName("autoscaler")
        .format("kafka")
        .options(**spark_options(settings.kafka))
        .option("kafka.compression.type", "gzip")  # of the four the one that kafka-python reads by itself
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=scaling.trigger)
        .start()
    )


def resumes_from(checkpoint: Path) -> bool:
    """Return whether a query that starts on a checkpoint goes on where its log says, and at no other offset."""
    return any((checkpoint / "offsets").glob("[0-9]*"))


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

    Creates missing topics, accepts contracts, divides pools, brings learned agents and rehearsals to the workers, and
    prints one line per event: `autoscaler: ready` after the first micro-batch. While another one decides from the
    checkpoint it gets ready, says so (`ready to take over`), touches nothing, and goes on once that one has ended.

    Args:
        settings: policy, broker, contracts and registry.
        checkpoint: folder of the query's state; contracts, learned artifacts and whose turn it is are kept beside it,
            under its name with the endings `.contracts.json`, `.pools.json`, `.agents`, `.rehearsals` and `.lock`.

    Raises:
        SystemExit: the query failed, or Spark refuses its trigger or its checkpoint; the message holds the error.
        BrokerError: no broker, topics cannot be created, or it stops answering before the query runs.
        AnotherAutoscalerError: one decides on these topics already, from another checkpoint; or has begun to, while no
            job ran, and this one has left.
        JavaError, JarsError: Spark cannot start.
        SpreadError: the checkpoint is of another number of cores, and Spark cannot spread it.
        SettingsError, ValueError: a security option that Kafka's Java client lacks; or that kafka-python lacks; the
            file of signing keys is wrong, or executors on a cluster cannot read it.
        OSError: a file beside the checkpoint cannot be written, or locked.
    """
    stop = event_of_signals()
    signer = Signer.of(settings.kafka)
    signer.check_file()
    create_topics(settings.kafka)
    turn = Turn(checkpoint, settings.kafka)
    keep_sigterm_from_jvm()

    def begin_if_free() -> BesideQuery | None:
        return begin(settings, checkpoint, stop) if turn.has_come() else None

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(begin_if_free)  # while the JVM starts
        cores, master = settings.autoscaler.cores, settings.autoscaler.master
        spark = query_session("autoscaler", settings, cores, master, python_state=True)
    keys = ExecutorsKeys()
    if master and signer.file is not None:
        keys.ask(spark, signer, cores, stop)

    def rehearse(folder: Path) -> StreamingQuery:
        warm_up_registry(settings)
        return _started(lambda: start_query(spark, settings, checkpoint, rehearsal=folder), str)

    if not stop.is_set() and (first.result() or stand_by(turn, stop, rehearse)):
        begun = first.result() or begin(settings, checkpoint, stop)
        watch = begin_to_repeat(partial(leave_if_lost, turn, stop), stop)
        report(spread_state(spark, checkpoint, cores, "autoscaler.cores"))
        remedy = partial(remedy_of, checkpoint) if resumes_from(checkpoint) else str
        clock = jvm_clock(spark)
        watch_clock = ClockWatch(clock.set_back_s, partial(wait_while_behind, settings.kafka, clock.now_s, stop))
        run_until(stop, lambda: start_query(spark, settings, checkpoint, begun.learned), watch_clock, remedy)
        begun.end()
        watch.join(END_S)
        name_for_frames(checkpoint)
        turn.hand_over()
    spark.stop()
    if keys.problem:
        raise SettingsError(keys.problem)
    if turn.lost:
        raise another_autoscaler(settings.kafka, "its jobs")


def leave_if_lost(turn: Turn, stop: threading.Event) -> list[str]:
    """Set `stop` once another autoscaler has claimed the topics; returns what there is to say."""
    told = turn.look()
    if turn.lost:
        stop.set()
    return told


def run_until(
    stop: threading.Event, start: Callable[[], StreamingQuery], clock: ClockWatch, remedy: Callable[[], str] = str
) -> None:
    """Run a query until `stop` is set, and say when it is ready; what `remedy` says is added where it never was.

    Before its first micro-batch Spark waits ten seconds, a constant of its own, for a Python worker to import what it
    needs; where all cores are busy that is not enough, and it is started again, at most TRIES times in all. Where the
    clock is set back, too: Spark would sleep until the wall time of the next micro-batch has come.

    Raises:
        SystemExit: Spark does not start it; or it failed for another reason, after it was ready, or TRIES times. The
            message holds the error.
    """
    query, tries, ready = _started(start, remedy), 1, False
    while not stop.wait(LOOK_AT_QUERY_S):
        if query.isActive and (by_s := clock.set_back_s()):
            report([f"the clock was set back by {by_s:.0f} s; the query is started again"])
            query.stop()
            clock.wait_until_right()
            query, ready = _started(start, remedy), False
        if query.isActive:
            if not ready and query.lastProgress is not None:
                ready = True
                report(["ready"])
            continue
        failure = query.exception()
        if ready or tries == TRIES or SLOW_WORKER not in str(failure):
            raise SystemExit(f"the autoscaler's query failed: {failure}{'' if ready else advice_on(failure, remedy)}")
        tries += 1
        report([f"a Python worker took longer to start than Spark waits; try {tries} of {TRIES}"])
        query = _started(start, remedy)
    query.stop()


def _started(start: Callable[[], StreamingQuery], remedy: Callable[[], str]) -> StreamingQuery:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return start()
    except (PySparkException, Py4JJavaError) as error:
        raise SystemExit(f"the autoscaler's query does not start: {error}{advice_on(error, remedy)}") from None
