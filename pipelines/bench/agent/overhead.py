"""`tidecast bench agent`: what the agent costs the job it is attached to, measured on a job that needs every core.

The same backlog is drained over and over, with and without the agent in turn, by one Spark session in one process.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from configs.sections import Kafka
from configs.settings import Settings
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.spark.session import local_session
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "bench"
RECORDS = 240_000  # of a drain
PER_BATCH = 20_000
HASHES = 12
"""Rounds of hashing per record: a batch takes about a second of all cores, as in a job that is worth scaling."""
WARM_UP = 2
SKIP = 2
"""Batches at the beginning of a drain that are not counted: planning, connections, the agent's own start."""


def measure_overhead(settings: Settings, pairs: int = 8) -> dict[str, Any]:
    """Measure throughput with and without the agent: drain the same 240,000 records in turn; takes minutes, prints.

    Starts a broker and a Spark session on all cores, with their state in `var/bench`, and ends them; checkpoints are
    deleted, the broker's files and logs stay.

    Args:
        settings: without an address of a broker, registry or Airflow.
        pairs: of drains, one with and one without the agent; at least 1.

    Returns:
        `pairs`, a dict each: `with_rps` and `without_rps` (records/s over all batches but the first two) and `ratio`,
        with ÷ without; `ratio`, their geometric mean, and `ratio_low`, `ratio_high`, its 95 % bootstrap interval;
        medians over pairs of the agent's CPU time ÷ wall time (1 = one core): `cpu_python` (its threads), `cpu_jvm`
        (the JVM's threads that answer them; 0 elsewhere than on Linux), `cpu` (both).

    Raises:
        SettingsError: such an address is configured.
        StackError, ProcessError, PortError, JavaError, JarsError, OSError: broker or Spark does not start, or a stack
            runs on the folder already.
        BrokerError, kafka.errors.KafkaError, StreamingQueryException: the broker does not answer, or a query fails.
        ValueError: `pairs` is 0.
    """
    settings = isolated_settings(settings, "bench")
    measured, shares = [], []
    with Stack(settings, {"broker"}) as stack:
        kafka, folder = stack.settings.kafka, settings.var_dir / "checkpoints"
        create_topics(kafka)
        _fill(kafka)
        spark = local_session("tidecast-bench", cores=psutil.cpu_count() or 1)
        spark.sparkContext.setLogLevel("ERROR")  # many queries overfill the pool of consumers, a warning each
        try:
            for _ in range(WARM_UP):
                _drain(spark, kafka, folder, attached=True)
            for index in range(pairs):
                order = (True, False) if index % 2 else (False, True)
                drained = {attached: _drain(spark, kafka, folder, attached) for attached in order}
                shares.append(drained[True][1])
                with_rps, without_rps = drained[True][0], drained[False][0]
                ratio = with_rps / without_rps
                measured.append({"with_rps": with_rps, "without_rps": without_rps, "ratio": ratio})
                print(f"pair {index + 1:2}: {with_rps:9.0f} with, {without_rps:9.0f} without, {ratio:.4f}")
        finally:
            spark.stop()
            shutil.rmtree(folder, ignore_errors=True)
    logs = np.log([pair["ratio"] for pair in measured])
    drawn = np.random.default_rng(7).choice(logs, (10_000, len(logs))).mean(axis=1)
    ratio, low, high = np.exp([logs.mean(), *np.quantile(drawn, [0.025, 0.975])]).tolist()
    python, jvm = (statistics.median(share[i] for share in shares) for i in (0, 1))
    print(f"throughput with ÷ without the agent: {ratio:.4f} ({low:.4f} to {high:.4f} at 95 %, {pairs} pairs)")
    print(f"the agent's share of a core: {python + jvm:.2%} ({python:.2%} its threads, {jvm:.2%} in the JVM for them)")
    return {
        "pairs": measured, "ratio": ratio, "ratio_low": low, "ratio_high": high,
        "cpu_python": python, "cpu_jvm": jvm, "cpu": python + jvm,
    }  # fmt: skip


def _fill(kafka: Kafka) -> None:
    publisher = Publisher(kafka, linger_ms=20, acks=1, enable_idempotence=False)
    for i in range(RECORDS):
        publisher.send_bytes("events", str(i % 997).encode(), b"x" * 100, partition=i % kafka.event_partitions)
    publisher.close()


def _drain(spark: SparkSession, kafka: Kafka, folder: Path, attached: bool) -> tuple[float, tuple[float, float]]:
    """Drain the backlog once: records/s over the counted batches, and the agent's shares of a core (Python, JVM)."""
    from tidecast import attach

    reads = {
        "kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "events", "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": PER_BATCH,
    }  # fmt: skip
    work = "sha2(" * HASHES + "CAST(value AS STRING)" + ", 512)" * HASHES
    events = spark.readStream.format("kafka").options(**reads).load().selectExpr("key", f"{work} AS digest")
    counts = events.groupBy("key").agg({"digest": "max"})
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    before = _jvm_threads(spark)
    query = writer.option("checkpointLocation", str(folder / uuid.uuid4().hex)).start()
    agent = attach(query, job=JOB) if attached else None
    readings = []
    while not query.awaitTermination(1):  # both sides are read, so that the reading costs both the same
        jvm = sum(cpu for thread, cpu in _jvm_threads(spark).items() if thread not in before)
        readings.append((time.monotonic(), _own_threads(), jvm))
    if agent is not None:
        agent.stop()
    batches = [p for p in query.recentProgress if p["numInputRows"] > 0]
    ends = [
        datetime.fromisoformat(p["timestamp"]).timestamp() + p["durationMs"]["triggerExecution"] / 1000 for p in batches
    ]
    rate = sum(p["numInputRows"] for p in batches[SKIP:]) / (ends[-1] - ends[SKIP - 1])
    if len(readings) <= SKIP + 1:
        return rate, (0.0, 0.0)
    (began, python, jvm), (until, python_after, jvm_after) = readings[SKIP], readings[-1]
    return rate, ((python_after - python) / (until - began), (jvm_after - jvm) / (until - began))


def _own_threads() -> float:
    """CPU seconds of the agent's threads in this process, those of its Kafka clients included."""
    ids = {t.native_id for t in threading.enumerate() if f"tidecast-{JOB}" in t.name}
    return float(sum(t.user_time + t.system_time for t in psutil.Process().threads() if t.id in ids))


def _jvm_threads(spark: SparkSession) -> dict[int, float]:
    """CPU seconds of the driver JVM's Py4J connections; each belongs to one thread of Python."""
    jvm: Any = spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    try:
        names = {int(task.name): (task / "comm").read_text() for task in Path(f"/proc/{pid}/task").iterdir()}
    except OSError:
        return {}  # only Linux tells threads by name
    times = {t.id: t.user_time + t.system_time for t in psutil.Process(pid).threads()}
    return {i: times[i] for i, name in names.items() if name.startswith("Thread-") and i in times}
