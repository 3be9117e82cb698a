"""One recorded log of a fleet through the autoscaler's query on several numbers of partitions: CPU and decisions.

The clock of a step is that of the log, and a micro-batch holds a round of it, of each job what it says at one time:
what is compared is what the division of the jobs does. Live, micro-batches end where the wall clock lets them, so that
two runs on the same records decide at other moments.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.bench.fleet.jobs import STEP_S, begun_s, contract_of
from pipelines.bench.fleet.told_job import MEAN_RPS, SWING_S, ToldJob
from pipelines.bench.fleet.usage import cpu_s_of
from pipelines.scale.contracts import AcceptedContracts, accepted_file
from pipelines.scale.processor import Scaler
from pipelines.scale.stateful import add_scaling_step, make_stateful_processor, step_from
from pipelines.whole_file import write_json
from tidecast.messages import Forecast, Message, encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERY_S = 4.0
"""Seconds between two metrics of a job."""
BEGUN_S = 1_780_000_000.0
"""Wall time at which the log begins; any would do."""
POLICY, LEVELS, AHEAD = "mpc", (0.1, 0.5, 0.9), 10
SCHEMA = "key string, topic string, value string, partition int, offset bigint"
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
"""With which a query whose jobs have timers would never end: Spark plans one micro-batch after another for them."""
PATIENCE_S = 1800.0
Row = dict[str, Any]
Decided = tuple[int, str, tuple[str, ...]]
"""Executors, reason and codes of a decision."""
Decisions = dict[str, list[Decided]]
"""By job, in order."""


class DecidedLog(NamedTuple):
    """What a query made of a log: its decisions, and `cpu_s`, seconds of a core, of the rounds that count."""

    decisions: Decisions
    cpu_s: float


def compare_partitions(
    spark: SparkSession, folder: Path, numbers: Sequence[int], jobs: int, rounds: int, warm: int
) -> dict[str, Any]:
    """Record a log and decide on it with each number of partitions; blocks for a second or more a round and number.

    Args:
        spark: a session with the state store of queries.
        folder: empty, for the log and the checkpoints.
        numbers: of partitions; the others are compared with the first.
        jobs: how many.
        rounds: metrics of each job.
        warm: rounds at first whose CPU does not count, at least 1.

    Returns:
        `jobs`, `rounds`; `cpu_ms`: by number of partitions (text) milliseconds of a core for a metric of a job;
        `decisions` on the first number; `differ`, those of the others, and `differ_alone`, those of the same steps
        without Spark, that are not the ones of the first, by job and in order.

    Raises:
        TimeoutError: a query does not end within PATIENCE_S.
        Exception: as pyspark raises it.
    """
    log, alone = record_log(jobs, rounds)
    write_log(folder / "log", log)
    decided = {n: decide_on(spark, folder / "log", folder / f"query-{n}", jobs, n, warm) for n in numbers}
    first, *others = (one.decisions for one in decided.values())
    counted = jobs * (rounds - warm)
    return {
        "jobs": jobs, "rounds": rounds, "decisions": sum(map(len, first.values())),
        "cpu_ms": {str(number): round(1000 * one.cpu_s / counted, 3) for number, one in decided.items()},
        "differ": sum(count_differing(first, other) for other in others), "differ_alone": count_differing(first, alone),
    }  # fmt: skip


def record_log(jobs: int, rounds: int) -> tuple[list[list[Row]], Decisions]:
    """Let jobs tell of themselves and follow what the autoscaler's step decides, without Spark.

    Returns:
        The records of each round, and the decisions.
    """
    contracts = [contract_of(number) for number in range(jobs)]
    told = [ToldJob(one, number, begun_s(number, jobs, BEGUN_S - SWING_S)) for number, one in enumerate(contracts)]
    kept: list[str | None] = [None] * jobs
    log: list[list[Row]] = []
    sent: list[tuple[str, str, str]] = []
    for turn in range(rounds):
        log.append([])
        for number, contract in enumerate(contracts):
            now = round(BEGUN_S + EVERY_S * (turn + number / jobs), 3)
            messages: list[tuple[str, Message]] = [("metrics", one) for one in told[number].second(now)]
            if turn % round(STEP_S / EVERY_S) == 0:
                messages.append(("forecasts", _forecast(contract.job, now, begun_s(number, jobs, BEGUN_S - SWING_S))))
            rows = [_row(contract.job, topic, message, turn) for topic, message in messages]
            scaler, at = Scaler(contract.job, contract, POLICY, "act"), time_of(rows)
            done = step_from(scaler, kept[number], [{**row, "value": row["value"].encode()} for row in rows], at, at)
            for decided in decisions_of(done.sent).get(contract.job, ()):
                told[number].follow(decided[0], now)
            kept[number] = done.kept
            log[-1] += rows
            sent += done.sent
    return log, decisions_of(sent)


def write_log(folder: Path, log: Sequence[Sequence[Row]]) -> None:
    """Write a file for each round, for a query that reads them one by one.

    Raises:
        OSError: one cannot be written.
    """
    folder.mkdir(parents=True)
    for number, rows in enumerate(log):
        file = folder / f"{number:05}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (number, number))  # Spark reads them by age


def decide_on(
    spark: SparkSession, log: Path, checkpoint: Path, jobs: int, partitions: int, warm: int
) -> DecidedLog:  # fmt: skip
    """Run the autoscaler's step as a query over a log that was written, to its end.

    What is counted is the CPU of Spark and its Python workers from the end of the `warm`-th round on.

    Raises:
        TimeoutError: it does not end within PATIENCE_S.
        Exception: as pyspark raises it.
    """
    accepted = AcceptedContracts(accepted_file(checkpoint))
    write_json(accepted.file, {one.job: one.model_dump(mode="json") for one in map(contract_of, range(jobs))})
    processor = make_stateful_processor(accepted, POLICY, "act", clock=time_of)
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(log))
    records = source.withColumn("value", source.value.cast("binary"))
    jvm: Any = spark._jvm
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    sent: list[tuple[str, str, str]] = []
    taken: list[float] = []

    def take(frame: DataFrame, _: int) -> None:
        sent.extend(map(tuple, frame.collect()))
        taken.append(cpu_s_of(pid))

    told = {"spark.sql.shuffle.partitions": str(partitions), NO_DATA: "false"}
    before = {name: str(spark.conf.get(name)) for name in told}
    _configure(spark, told)
    try:
        query = (
            add_scaling_step(records, processor)
            .select("topic", "key", "value")
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(checkpoint))
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(int(PATIENCE_S)):
            query.stop()
            raise TimeoutError(f"the query on {partitions} partitions has not ended within {PATIENCE_S:.0f} s")
    finally:
        _configure(spark, before)
    return DecidedLog(decisions_of(sent), taken[-1] - taken[warm - 1])


def time_of(rows: Sequence[Row]) -> float:
    """Return the time that the log has come to, that of the newest of these records; no step is without one.

    Raises:
        ValueError: there is none.
    """
    return max(float(json.loads(row["value"])["wall_time"]) for row in rows)


def decisions_of(sent: Iterable[tuple[str, str, str]]) -> Decisions:
    """Return the decisions among what was sent (topic, key, value), by job and in order."""
    found: Decisions = {}
    for topic, job, value in sent:
        if topic == "decisions":
            said = json.loads(value)
            found.setdefault(job, []).append((said["executors"], said["reason"], tuple(said["codes"])))
    return found


def count_differing(one: Decisions, other: Decisions) -> int:
    """Return how many places of the jobs' decisions differ; one that the other lacks differs."""
    jobs = {*one, *other}
    return sum(a != b for job in jobs for a, b in zip_longest(one.get(job, ()), other.get(job, ())))


def _configure(spark: SparkSession, values: dict[str, str]) -> None:
    for name, value in values.items():
        spark.conf.set(name, value)


def _forecast(job: str, now: float, lowest: float) -> Forecast:
    """The load that is to come as it is drawn from, a fifth around it."""
    at = now // STEP_S * STEP_S
    means = [MEAN_RPS * (1 - 0.7 * math.cos(2 * math.pi * (at + STEP_S * n - lowest) / SWING_S)) for n in range(AHEAD)]
    rows = [[round(share * mean, 3) for share in (0.8, 1.0, 1.2)] for mean in means]
    return Forecast(job, at, now, 1.0, STEP_S, list(LEVELS), rows, "drawn", "1", "champion", "blend", 0, 1)


def _row(job: str, topic: str, message: Message, turn: int) -> Row:
    return {"key": job, "topic": topic, "value": encode(message).decode(), "partition": 0, "offset": turn}
