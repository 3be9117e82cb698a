"""`tidecast bench agent`: what the agent costs the job it is attached to, measured on a job that needs every core.

The same backlog is drained over and over, with and without the agent in turn, by one Spark session in one process.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from configs.sections import Kafka
from configs.settings import Settings
from pipelines.kafka.broker import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.spark.session import local_session
from pipelines.stack.apart import apart
from pipelines.stack.stack import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "bench"
RECORDS = 240_000
PER_BATCH = 20_000
HASHES = 12
"""Rounds of hashing per record: a batch takes about a second of all cores, as in a job that is worth scaling."""
WARM_UP = 2
SKIP = 2
"""Batches at the beginning of a drain that are not counted: planning, connections, the agent's own start."""


def run(settings: Settings, pairs: int = 8, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure `pairs` pairs of drains on a broker and a session of its own; prints as it goes.

    Returns:
        `pairs`: records/s with and without the agent and their ratio; `ratio` (geometric mean) with its 95 % bootstrap
        interval `ratio_low`, `ratio_high`; the agent's shares of one core: `cpu_python` (its threads), `cpu_jvm` (the
        threads that answer them), `cpu` (both).
    """
    settings = apart(settings, "bench")
    with Stack(settings, {"broker"}) as stack:
        kafka = stack.settings.kafka
        create_topics(kafka)
        _fill(kafka)
        spark = local_session("tidecast-bench", cores=psutil.cpu_count() or 1)
        spark.sparkContext.setLogLevel("ERROR")  # many queries overfill the pool of consumers, a warning each
        try:
            folder = settings.var_dir / "checkpoints"
            for _ in range(WARM_UP):
                _drain(spark, kafka, folder, attached=True)
            measured, shares = [], []
            for index in range(pairs):
                rates = {}
                for attached in (True, False) if index % 2 else (False, True):
                    rates[attached], share = _drain(spark, kafka, folder, attached)
                    if attached:
                        shares.append(share)
                pair = {"with_rps": rates[True], "without_rps": rates[False], "ratio": rates[True] / rates[False]}
                measured.append(pair)
                say(f"pair {index + 1:2}: {rates[True]:9.0f} with, {rates[False]:9.0f} without, {pair['ratio']:.4f}")
        finally:
            spark.stop()
            shutil.rmtree(settings.var_dir / "checkpoints", ignore_errors=True)
    ratio, low, high = interval([pair["ratio"] for pair in measured])
    python, jvm = (statistics.median(share[i] for share in shares) for i in (0, 1))
    say(f"throughput with ÷ without the agent: {ratio:.4f} ({low:.4f} to {high:.4f} at 95 %, {pairs} pairs)")
    say(f"the agent's share of a core: {python + jvm:.2%} ({python:.2%} its threads, {jvm:.2%} in the JVM for them)")
    return {
        "pairs": measured, "ratio": ratio, "ratio_low": low, "ratio_high": high,
        "cpu_python": python, "cpu_jvm": jvm, "cpu": python + jvm,
    }  # fmt: skip


def interval(ratios: list[float], resamples: int = 10_000, seed: int = 7) -> tuple[float, float, float]:
    """Geometric mean of ratios and its 95 % percentile bootstrap interval."""
    import numpy as np

    logs = np.log(ratios)
    picks = np.random.default_rng(seed).integers(len(logs), size=(resamples, len(logs)))
    low, high = np.quantile(logs[picks].mean(axis=1), [0.025, 0.975])
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def _fill(kafka: Kafka) -> None:
    publisher = Publisher(kafka, linger_ms=20, acks=1, enable_idempotence=False)
    for i in range(RECORDS):
        publisher.send_bytes("events", str(i % 997).encode(), b"x" * 100, partition=i % kafka.event_partitions)
    publisher.close()


def _drain(spark: SparkSession, kafka: Kafka, folder: Path, attached: bool) -> tuple[float, tuple[float, float]]:
    """Drain the backlog once: records/s over the counted batches, and the agent's shares of a core (Python, JVM)."""
    from tidecast import attach

    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap or "")
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .load()
    )
    work = "CAST(value AS STRING)"
    for _ in range(HASHES):
        work = f"sha2({work}, 512)"
    counts = events.selectExpr("key", f"{work} AS digest").groupBy("key").agg({"digest": "max"})
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
    ends = [_ended(p) for p in query.recentProgress if p["numInputRows"] > 0]
    rows = [p["numInputRows"] for p in query.recentProgress if p["numInputRows"] > 0]
    rate = sum(rows[SKIP:]) / (ends[-1] - ends[SKIP - 1])
    if len(readings) <= SKIP + 1:
        return rate, (0.0, 0.0)
    (began, python, jvm), (until, python_after, jvm_after) = readings[SKIP], readings[-1]
    return rate, ((python_after - python) / (until - began), (jvm_after - jvm) / (until - began))


def _ended(progress: Any) -> float:
    started = datetime.fromisoformat(progress["timestamp"]).timestamp()
    took_ms: int = progress["durationMs"]["triggerExecution"]
    return started + took_ms / 1000


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
