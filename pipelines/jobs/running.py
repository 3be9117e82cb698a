"""How a managed job runs: session, query, progress log, agent, and a clean stop on SIGTERM."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.contract import Contract, load_contract
from configs.errors import CorrectableError
from configs.settings import Settings, load
from pipelines.jobs.progress_log import ProgressLog, listener_of
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.spark import spark_options, topic_out
from pipelines.spark.session import cluster_session
from pipelines.stack.state import with_stack_addresses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.replay import Replayable

TOPICS = ("events", "results")
"""What a job reads and writes, unless it says otherwise."""


@dataclass(frozen=True)
class Launch:
    """What a job's query is built from.

    Attributes:
        job: name of the job; also of its query and of `<job>.checkpoint` in `run_dir`.
        spark: the session.
        settings: all of them.
        run_dir: folder of the run.
        start: first offset of the run, by topic and partition.
    """

    job: str
    spark: SparkSession
    settings: Settings
    run_dir: Path
    start: Mapping[str, Mapping[int, int]]

    def events(self) -> DataFrame:
        """Return the topic `events`, as `records` does."""
        return self.records("events")

    def records(self, topic: str) -> DataFrame:
        """Return a topic, from `start` on, as a streaming DataFrame (columns of Spark's Kafka source).

        Raises:
            BrokerError: no broker is set.
            SettingsError: a security option that Spark's client cannot follow.
            KeyError: `start` lacks the topic.
        """
        kafka = self.settings.kafka
        options = {
            "subscribe": kafka.topic(topic),
            "startingOffsets": json.dumps({kafka.topic(topic): {str(p): o for p, o in self.start[topic].items()}}),
            "maxOffsetsPerTrigger": str(self.settings.job.max_offsets_per_trigger),
            # A cached consumer waits in a long poll; with little traffic every task would wait for the default 500 ms.
            "kafka.fetch.max.wait.ms": "20",
        }
        return self.spark.readStream.format("kafka").options(**spark_options(kafka), **options).load()

    def to_kafka(self, frame: DataFrame, mode: str = "update") -> StreamingQuery:
        """Start the query that writes `frame` (columns topic, key, value) to Kafka in this output mode, and return it.

        Its checkpoint is `<job>.checkpoint` in the run folder.

        Raises:
            BrokerError, SettingsError: as `events`.
            pyspark.errors.PySparkException: Spark refuses the trigger or the checkpoint.
        """
        return (
            frame.selectExpr(topic_out(self.settings.kafka), "key", "value")
            .writeStream.queryName(self.job).format("kafka").options(**spark_options(self.settings.kafka))
            .option("checkpointLocation", str(self.run_dir / f"{self.job}.checkpoint"))
            .outputMode(mode).trigger(processingTime=self.settings.job.trigger).start()
        )  # fmt: skip


def run_job(
    job: str, start_query: Callable[[Launch], StreamingQuery], argv: list[str] | None = None,
    topics: Sequence[str] = TOPICS, room: str = "",
    replay: Callable[[Launch, StreamingQuery], Replayable] | None = None,
) -> int:  # fmt: skip
    """Run a managed job from the command line until SIGTERM or ctrl-C; only in the main thread (it sets handlers).

    Leaves in the run folder: `<job>.start.json` (where it began), `<job>.progress.jsonl` (every progress of the query),
    `<job>.json` (totals so far), `eventlog/`, and `<job>.checkpoint`, from which the same command goes on.

    Args:
        job: name of the job and of its contract (YAML of latency target and executor bounds).
        start_query: builds and starts its query.
        argv: arguments; default: those of the process.
        topics: that it reads or writes, whose ends are where the run begins.
        room: folder of its module below `pipelines.jobs`, and of its contract below the others, where the autoscaler
            does not look.
        replay: of its running query, how ranges of it are read again beside it; None: orders of replays are refused.

    Returns:
        0 after a clean stop; 1 if the query failed, or if settings, broker, Java or jars are wrong, which stderr says.

    Raises:
        SystemExit: wrong arguments (status 2) or `--help`.
        ValueError, tidecast.spark.cluster.ClusterError: the agent cannot be attached (`tidecast.agent.attach`).
        kafka.errors.KafkaTimeoutError: the broker gives no offsets within 30 s.
        OSError: the run folder cannot be written.
        Exception: whatever `start_query` raises.
    """
    module = ".".join(filter(None, ("pipelines.jobs", room, job)))
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description="Run a managed job.")
    parser.add_argument("--run-dir", type=Path, required=True, help="folder for checkpoint, progress and event log")
    alone = "run without Tidecast's agent, with the least number of executors"
    parser.add_argument("--no-agent", action="store_true", help=alone)
    stock = "start executors as stock Spark does: no class archive, Spark's own worker daemon"
    parser.add_argument("--stock-starts", action="store_true", help=stock)
    args = parser.parse_args(argv)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    try:
        settings = with_stack_addresses(load())
        contract = load_contract(job, settings.contracts_dir / room)
        if args.no_agent:  # Spark's own allocation manager would scale, and nobody would say so
            least = contract.executors.model_copy(update={"max": contract.executors.min})
            contract = contract.model_copy(update={"executors": least})
        args.run_dir.mkdir(parents=True, exist_ok=True)
        start = fix_first_offsets(settings, args.run_dir, job, topics)
        spark = cluster_session(f"tidecast {job}", settings, contract, args.run_dir / "eventlog", args.stock_starts)
    except CorrectableError as error:
        print(error, file=sys.stderr)
        return 1
    log = ProgressLog(args.run_dir, job, spark.sparkContext)
    spark.streams.addListener(listener_of(log))
    launch = Launch(job, spark, settings, args.run_dir, start)
    query = start_query(launch)
    again = None if replay is None else replay(launch, query)
    agent = None if args.no_agent else _attached(query, job, settings, contract, again)
    while query.isActive and not stop.wait(0.2):
        pass
    return _finish(spark, query, agent, log)


def _attached(
    query: StreamingQuery, job: str, settings: Settings, contract: Contract, replay: Replayable | None
) -> Any:
    """The query's agent. This process is ours: while a broker is away its client says so often, and the agent once."""
    from tidecast import attach

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    bounds, kafka = contract.executors, settings.kafka
    return attach(
        query, job=job, bootstrap=kafka.bootstrap, mode="act", clock=None, security=kafka.security,
        prefix=kafka.prefix, executors=(bounds.min, bounds.max), cores_per_executor=bounds.cores, replay=replay,
    )  # fmt: skip


def read_first_offsets(run_dir: Path, job: str) -> dict[str, dict[int, int]]:
    """Read the run's first offset per topic and partition from `<job>.start.json`.

    Raises:
        OSError: the run folder has no such file, or it cannot be read.
        ValueError: it is no JSON.
    """
    written = json.loads(_start(run_dir, job).read_text())
    return {topic: {int(p): offset for p, offset in places.items()} for topic, places in written.items()}


def fix_first_offsets(
    settings: Settings, run_dir: Path, job: str, topics: Sequence[str] = TOPICS
) -> dict[str, dict[int, int]]:
    """Return this run's first offsets of its topics, {topic: {partition: offset}}.

    At the run's first call these are the topics' present ends, which are written to `<job>.start.json` in `run_dir`
    (must exist); later calls return what the file holds.

    Raises:
        BrokerError: no broker, or a topic is not there.
        kafka.errors.KafkaTimeoutError: the broker gives no offsets within 30 s.
        OSError: the file cannot be written or read.
        ValueError: the file is no JSON, or kafka-python has no such security option.
    """
    if not _start(run_dir, job).is_file():
        known = {topic: topic_offsets(settings.kafka, topic) for topic in topics}
        ends = {topic: {p: end for p, (_, end) in places.items()} for topic, places in known.items()}
        _start(run_dir, job).write_text(json.dumps(ends))
    return read_first_offsets(run_dir, job)


def _start(run_dir: Path, job: str) -> Path:
    return run_dir / f"{job}.start.json"


def _finish(spark: SparkSession, query: StreamingQuery, agent: Any, log: ProgressLog) -> int:
    """Stop agent, query and session, in this order; a JVM that went first (a signal to the whole group) is no fault."""
    failure = None
    with suppress(Exception):
        failure = query.exception()
    if agent is not None:
        agent.stop()
    for end in (query.stop, spark.stop):
        with suppress(Exception):
            end()
    if failure is not None:
        print(f"query {log.totals}: {failure}", file=sys.stderr)
        return 1
    return 0
