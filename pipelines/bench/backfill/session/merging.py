"""What the sessions of a job that merges share: its processes, its clock, and whether its table is what came."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.sections import Kafka
from pipelines.bench.backfill.arrangement import SERVICE_MS
from pipelines.bench.backfill.outages import TARGET_S
from pipelines.bench.backfill.session.merged_job import COUNTED, DELAY_MS, RATE, WINDOW_MS, group_of
from pipelines.bench.backfill.session.merged_job import sampled as sample_of
from pipelines.bench.backfill.session.producer import RETRACTION
from pipelines.jobs.launch import read_first_offsets
from pipelines.jobs.plans.merged import table_of
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from pipelines.stack.addresses import environment_variable
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack
from tidecast.control import clock_key
from tidecast.messages import Control

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOP_S = 60.0
"""Seconds that a job has for its clean end."""
NO_LIMIT = 1_000_000
"""Records of a batch, more than ever wait."""
Windows = Counter[tuple[str, int]]
"""Net number of records by key and begin of the window, epoch ms."""
TopicRecord = tuple[str, int, bytes]
"""Key, epoch ms and value."""
Bounded = dict[tuple[str, int], tuple[float, float]]
"""A result and the half width of its bound, by key and begin of the window."""
ROUNDING = 1e-9


@contextmanager
def running(
    stack: Stack, job: str, offsets: int | None, folder: Path, sampled: bool = False, delay_ms: int = DELAY_MS,
    bootstrap: str | None = None,
) -> Iterator[Process]:  # fmt: skip
    """Context manager: the job's process, beside the autoscaler's; both are ended, the job first and cleanly.

    Args:
        stack: with broker and Spark; its contracts' folder holds the job's contract alone.
        job: its name; its process is `<job>-live`.
        offsets: most records of a batch; None: as many as wait.
        folder: of the session.
        sampled: whether it counts approximately.
        delay_ms: how long it expects records to be late.
        bootstrap: by which way it and its executors reach the broker; None: straight.

    Raises:
        BrokerError: the broker does not answer.
        ProcessError, OSError: a process cannot be started.
    """
    now = time.time()
    with closing(Publisher(stack.settings.kafka)) as publisher:  # a managed job waits for its clock: here the wall's
        publisher.send("control", clock_key(job), Control(job, now, wall_start=now, trace_start=now, time_scale=1.0))
    module = ["-m", "pipelines.bench.backfill.session.merged_job", "--run-dir", str(folder), "--job", job]
    module += ["--delay-ms", str(delay_ms)]
    commands = {
        f"{job}-live": [*module, "--service-ms", str(SERVICE_MS), *(["--sampled"] if sampled else [])],
        f"{job}-autoscaler": ["-m", "tidecast", "autoscale", "--checkpoint", str(folder / "autoscaler")],
    }
    limit = {"TIDECAST_JOB__MAX_OFFSETS_PER_TRIGGER": str(offsets or NO_LIMIT)}
    way = {} if bootstrap is None else {environment_variable("broker"): bootstrap}
    started: list[Process] = []
    try:
        for (name, words), more in zip(commands.items(), (way, {}), strict=True):
            started.append(stack.spawn(name, [sys.executable, *words], limit | more))
        yield started[0]
    finally:
        for name in [*commands][: len(started)]:
            stack.end(name, STOP_S)


def judged_session(
    stack: Stack, job: str, folder: Path, seconds: float, sampled: bool = False, **more: Any
) -> dict[str, Any]:
    """Return what a session showed whose job has ended.

    Returns:
        As `recorded.read_session`, without rates and latencies; `wrong` of `windows` of the job's table that are not
        what its topic's records come to, by more than their bound where it counts approximately; `unlike`, those that
        are not to the last record what a batch over these records makes of them; and `more`.

    Raises:
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        MergeError: there is no table.
        OSError, ValueError: the job's first offsets cannot be read.
    """
    return judge_table(read_table(stack, job, folder, sampled), seconds, **more)


class ResultTable(NamedTuple):
    """What readers of a job's table see, what its topic's records come to, and what a batch makes of these.

    The batch is of a job that counts approximately; else it is what the records come to. `absent`: half width of the
    bound around 0 of a window that is not in the table.
    """

    shown: Bounded
    net: Windows
    batch: Mapping[tuple[str, int], float]
    absent: float = 0.0


def read_table(stack: Stack, job: str, folder: Path, sampled: bool = False) -> ResultTable:
    """Read the table of a job that has ended; raises as `judged_session`."""
    records = _records(stack.settings.kafka, folder, job)
    net = count_net(records, group_of if sampled else str)
    shown, again = _shown(folder, job, records if sampled else [])
    if not sampled:
        return ResultTable(shown, net, net)
    return ResultTable(shown, net, {window: one for window, (one, _) in again.items()}, COUNTED.absent_error(RATE))


def judge_table(
    table: ResultTable, seconds: float, truth: Mapping[tuple[str, int], float] | None = None, **more: Any
) -> dict[str, Any]:
    """Return what `judged_session` does; `truth`: what the windows come to, None: what the topic's records do."""
    expected = table.net if truth is None else truth
    wrong = count_outside(table.shown, expected, table.absent)
    alike = {window: (net, 0.0) for window, (net, _) in table.shown.items()}
    unlike = count_outside(alike, table.batch)
    return {
        "seconds": seconds, "latency": [], "p99_s": None, "limit_s": TARGET_S, "rps": None, "rates": [], "done_s": None,
        "exact": unlike == 0, "decisions": 0, "differing": 0, "refused": None, "wrong": wrong, "windows": len(expected),
        "unlike": unlike, **more,
    }  # fmt: skip


def count_net(records: Iterable[TopicRecord], key_of: Callable[[str], str]) -> Windows:
    """Return what records come to; `key_of`: the result's key, by a record's."""
    found = Windows()
    for key, at_ms, value in records:
        found[key_of(key), at_ms // WINDOW_MS * WINDOW_MS] += -1 if value == RETRACTION else 1
    return Counter({each: net for each, net in found.items() if net})


def count_outside(shown: Bounded, truth: Mapping[tuple[str, int], float], absent: float = 0.0) -> int:
    """Return how many windows are not within their bound of what they are to be; one that is missing counts as 0.

    Args:
        shown: result and half width of its bound, by key and window.
        truth: what they are to be, likewise.
        absent: half width of the bound of one that is missing.
    """
    nothing = (0.0, absent)
    each = [(*shown.get(window, nothing), truth.get(window, 0)) for window in {*shown, *truth}]
    return sum(abs(result - net) > eps + ROUNDING for result, eps, net in each)


def _shown(folder: Path, job: str, records: list[TopicRecord]) -> tuple[Bounded, Bounded]:
    """What readers of the job's table see, and what the job's sample of records comes to in a batch."""
    from pyspark.sql import functions as F

    from pipelines.spark.session import local_session
    from tidecast.merge import read_results

    spark = local_session("what readers see", delta=True)
    try:
        seen = _bounded(read_results(spark, str(table_of(folder, job))))
        if not records:
            return seen, {}
        rows = [(key.encode(), value, at_ms) for key, at_ms, value in records]
        frame = spark.createDataFrame(rows, "key binary, value binary, at bigint")
        return seen, _bounded(sample_of(frame.withColumn("timestamp", F.timestamp_millis("at")), 0))
    finally:
        spark.stop()


def _bounded(results: DataFrame) -> Bounded:
    """Results with the half width of their bound: 0 where they are exact."""
    rows = [row.asDict() for row in results.collect()]
    return {(row["key"], row["_window_start"]): (row["n"], row.get("eps", 0.0)) for row in rows}


def _records(kafka: Kafka, folder: Path, job: str) -> list[TopicRecord]:
    """The topic's records, from the job's first one on."""
    first = read_first_offsets(folder, job)["events"]
    return [
        (record.key or "", round(1000 * record.timestamp), record.value)
        for record in read_records(kafka, "events")
        if record.offset >= first[record.partition]
    ]
