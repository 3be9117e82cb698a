"""The job that is measured: counts per key after a service time, live and replayed, in one application or in two.

`python -m pipelines.bench.backfill.session.job --run-dir DIR --job NAME --part live|replay ...`, until SIGTERM. A
replay begins when `order.json` stands in the run folder, or when the agent is ordered to.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.contract import Contract, Executors
from configs.errors import CorrectableError
from configs.settings import load
from pipelines.jobs.launch import Launch, fix_first_offsets
from pipelines.jobs.progress_log import ProgressLog, listener_of
from pipelines.kafka.spark import spark_options, topic_out
from pipelines.signals import event_of_signals
from pipelines.spark.session import cluster_session
from pipelines.stack.state import with_stack_addresses
from tidecast import attach
from tidecast.messages import decode
from tidecast.orders import ReplayOrder
from tidecast.replay import Replayable, replay_stream
from tidecast.replay.aside import POOL
from tidecast.replay.dry_run import first_batch
from tidecast.spark.locality import StateWait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ORDER, READY, DRY = "order.json", "ready", "dry-run"
"""Files of the run folder: what is to be replayed by a query that no agent starts; `ready-<part>` of each part; and one
that says that a replay's first batch was run dry."""
REPLAY = "replay"  # name of a replay's query; the live one's is the job's
REPLAYED = "replayed"


def counted(records: DataFrame, service_ms: int, topic: str, mark: str = "") -> DataFrame:
    """Count records per key, `service_ms` after another in a task, as records for a topic; the plan of both queries.

    Spark's metrics `replayed` hold the number `n` of each batch.

    Args:
        records: columns of Spark's Kafka source.
        service_ms: service time of a record, a sleep in the JVM.
        topic: of the results.
        mark: before their keys.
    """
    from pyspark.sql import functions as F

    sleep = F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), F.lit(service_ms).cast("long"))
    served = (
        records.observe(REPLAYED, F.count(F.lit(1)).alias("n"))
        .select(F.col("key").cast("string").alias("key"), sleep.alias("served"))
        .where("served IS NULL OR served IS NOT NULL")  # whoever does not use the answer does not wait for it
    )
    counts = served.groupBy("key").agg(F.count(F.lit(1)).alias("n"))
    value = F.to_json(F.struct("key", "n"))
    return counts.select(F.lit(topic).alias("topic"), F.concat(F.lit(mark), "key").alias("key"), value.alias("value"))


def fixed_stream(spark: SparkSession, order: ReplayOrder, options: Mapping[str, str], offsets: int) -> DataFrame:
    """Return an order's range as Spark alone reads it: with a `maxOffsetsPerTrigger` that stays as it is."""
    (topic,) = order.starts
    ends = " OR ".join(f"(partition = {part} AND offset < {end})" for part, end in order.ends[topic].items())
    parts = sorted(map(int, order.starts[topic]))
    return (
        spark.readStream.format("kafka").options(**options).option("assign", json.dumps({topic: parts}))
        .option("startingOffsets", json.dumps(order.starts)).option("maxOffsetsPerTrigger", str(offsets)).load()
        .where(ends)
    )  # fmt: skip


def start_replay(
    launch: Launch, stream: DataFrame, order: ReplayOrder, service_ms: int, trigger_s: float
) -> StreamingQuery:
    """Start the query that reads an order's range; its results go to `windows`, marked with the order's id."""
    kafka = launch.settings.kafka
    frame = counted(stream, service_ms, "windows", f"{order.id}:")
    return (
        frame.selectExpr(topic_out(kafka), "key", "value").writeStream.queryName(REPLAY).format("kafka")
        .options(**spark_options(kafka)).option("checkpointLocation", str(launch.run_dir / f"{order.id}.checkpoint"))
        .outputMode("update").trigger(processingTime=f"{trigger_s} seconds").start()
    )  # fmt: skip


def main() -> int:
    """Run a part until SIGTERM; status 1 where a query failed, or settings, broker or Java are wrong."""
    args = _arguments()
    stop = event_of_signals()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        settings = with_stack_addresses(load())
        name = args.job if args.part == "live" else f"{args.job}-{REPLAY}"
        contract = Contract(job=name, executors=Executors(min=args.least, max=args.most))
        spark = cluster_session(f"tidecast {name}", settings, contract)
        start = fix_first_offsets(settings, args.run_dir, args.job) if args.part == "live" else {}
    except CorrectableError as error:
        print(error, file=sys.stderr)
        return 1
    spark.streams.addListener(listener_of(ProgressLog(args.run_dir, name, spark.sparkContext), replays=True))
    launch = Launch(args.job, spark, settings, args.run_dir, start)
    queries: list[StreamingQuery] = []
    agent = None
    if args.part == "live":
        queries.append(launch.to_kafka(counted(launch.events(), args.service_ms, "results")))
        if args.agent:
            agent = _attached(launch, queries[0], args)
    (args.run_dir / f"{READY}-{args.part}").touch()
    order = args.run_dir / ORDER
    while not stop.wait(0.2) and all(query.isActive for query in queries):
        if args.offsets and order.is_file():
            if args.part == "live":  # as an agent would: only the rate differs between the arms
                spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
                StateWait().hold(True)
            known = decode(ReplayOrder, order.read_bytes())
            stream = fixed_stream(spark, known, spark_options(settings.kafka), args.offsets)
            queries.append(start_replay(launch, stream, known, args.service_ms, args.replay_trigger_s))
            args.offsets = 0
    return _finish(spark, queries, agent)


def _attached(launch: Launch, query: StreamingQuery, args: argparse.Namespace) -> Any:
    kafka = launch.settings.kafka

    def start(order: ReplayOrder) -> StreamingQuery:
        stream = replay_stream(launch.spark, order, spark_options(kafka))
        return start_replay(launch, stream, order, args.service_ms, args.replay_trigger_s)

    def run_dry(order: ReplayOrder) -> None:
        stream = replay_stream(launch.spark, order, spark_options(kafka))
        folder = args.run_dir / f"{order.id}.checkpoint"
        results = counted(stream, args.service_ms, "windows").writeStream.format("noop").outputMode("update")
        first_batch(results.option("checkpointLocation", str(folder)).start())
        (args.run_dir / DRY).touch()

    return attach(
        query, job=args.job, bootstrap=kafka.bootstrap, mode="act", prefix=kafka.prefix,
        executors=(args.least, args.most), cores_per_executor=1, replay=Replayable(start, dry_run=run_dry),
    )  # fmt: skip


def _arguments() -> argparse.Namespace:
    program = "python -m pipelines.bench.backfill.session.job"
    parser = argparse.ArgumentParser(prog=program, description="Run a measured job.")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--part", choices=("live", REPLAY), required=True)
    parser.add_argument("--least", type=int, required=True, help="executors")
    parser.add_argument("--most", type=int, required=True)
    parser.add_argument("--service-ms", type=int, required=True)
    parser.add_argument("--replay-trigger-s", type=float, required=True)
    parser.add_argument("--offsets", type=int, default=0, help="a replay's fixed maxOffsetsPerTrigger")
    parser.add_argument("--agent", action="store_true")
    return parser.parse_args()


def _finish(spark: SparkSession, queries: list[StreamingQuery], agent: Any) -> int:
    failures = []
    for query in queries:
        with suppress(Exception):
            failures.append(query.exception())
    if agent is not None:
        agent.stop()
    for end in (*(query.stop for query in queries), spark.stop):
        with suppress(Exception):
            end()
    told = [f"{failure}" for failure in failures if failure is not None]
    print(*told, sep="\n", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
