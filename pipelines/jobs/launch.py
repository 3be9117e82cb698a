"""What a managed job's query is built from: session, settings, the run's first offsets, and how it recovers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from configs.contract import Contract
from configs.errors import CorrectableError, SettingsError
from configs.limits import RecoveryTerms
from configs.settings import Settings
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.compression import NONE, chosen_codec
from pipelines.kafka.spark import spark_options, topic_out
from pipelines.spark.checkpoint.repair import free_name
from pipelines.spark.resource_manager import configured_file_system
from pipelines.whole_file import write_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.replay import Replayable

Replay = Callable[["Launch", "StreamingQuery"], "Replayable"]
"""From a running query to how ranges of it are read again beside it."""
TOPICS = ("events", "results")
"""What a job reads and writes, unless it says otherwise."""


class RunFileError(CorrectableError, ValueError):
    """A file of a run's first start cannot be read; the message says what to do."""


@dataclass(frozen=True)
class Launch:
    """What a job's query is built from.

    Attributes:
        job: name of the job; also of its query and of `<job>.checkpoint` in `run_dir`.
        spark: the session.
        settings: all of them.
        run_dir: folder of the run.
        start: first offset of the run, by topic and partition.
        contract: of the job; None: its defaults.
    """

    job: str
    spark: SparkSession
    settings: Settings
    run_dir: Path
    start: Mapping[str, Mapping[int, int]]
    contract: Contract | None = None

    @property
    def recovery(self) -> RecoveryTerms:
        """What the contract says of recovery, or its defaults."""
        return _recovery_of(self.contract)

    @property
    def checkpoint(self) -> Path:
        """Absolute path of the checkpoint of its query."""
        return self.run_dir.resolve() / f"{self.job}.checkpoint"

    def events(self) -> DataFrame:
        """Return the topic `events`, as `records` does."""
        return self.records("events")

    def records(self, topic: str) -> DataFrame:
        """Return a topic, from `start` on, as a streaming DataFrame (columns of Spark's Kafka source).

        Raises:
            BrokerError, SettingsError, KeyError: as `source`.
        """
        return self.spark.readStream.format("kafka").options(**self.source(topic)).load()

    def source(self, topic: str) -> dict[str, str]:
        """Return the options of Spark's Kafka source that reads a topic from `start` on.

        Raises:
            BrokerError: no broker is set.
            SettingsError: a security option that Spark's client cannot follow.
            KeyError: `start` lacks the topic.
        """
        kafka = self.settings.kafka
        return {
            **spark_options(kafka),
            "subscribe": kafka.topic(topic),
            "startingOffsets": json.dumps({kafka.topic(topic): {str(p): o for p, o in self.start[topic].items()}}),
            "maxOffsetsPerTrigger": str(self.settings.job.max_offsets_per_trigger),
            # A cached consumer waits in a long poll; with little traffic every task would wait for the default 500 ms.
            "kafka.fetch.max.wait.ms": "20",
        }

    def to_kafka(self, frame: DataFrame, mode: str = "update", topic: str = "results") -> StreamingQuery:
        """Start the query that writes `frame` (columns topic, key, value) to Kafka in this output mode, and return it.

        Its checkpoint is `<job>.checkpoint` in the run folder. The codec is chosen by `topic`, where most of its
        records go, and said.

        Raises:
            BrokerError, SettingsError: as `events`.
            pyspark.errors.PySparkException: Spark refuses the trigger or the checkpoint.
        """
        codec = chosen_codec(self.settings.kafka, topic, NONE)
        print(f"{self.job}: records of {topic} are compressed by {codec.name}: {codec.why}", flush=True)
        return (
            frame.selectExpr(topic_out(self.settings.kafka), "key", "value")
            .writeStream.queryName(self.job).format("kafka").options(**spark_options(self.settings.kafka))
            .option("kafka.compression.type", codec.name).option("checkpointLocation", str(self.checkpoint))
            .outputMode(mode).trigger(processingTime=self.settings.job.trigger).start()
        )  # fmt: skip


def refuse_order(contract: Contract, merges: bool) -> None:
    """Refuse a contract by which the newest records come first after an outage, where nothing merges.

    Args:
        contract: of a job.
        merges: whether the job's results are merged.

    Raises:
        SettingsError: as said.
    """
    if _recovery_of(contract).order == "live_first" and not merges:
        raise SettingsError(
            f"{contract.job}.yaml: backpressure.recovery.order=live_first, but this job's results go to a topic, where "
            "nobody can tell a window of which only a part was seen. State in_order, or run a job that merges its "
            "results into a table, as plans.key_totals does."
        )


def read_first_offsets(run_dir: Path, job: str) -> dict[str, dict[int, int]]:
    """Read the run's first offset per topic and partition from `<job>.start.json`.

    Raises:
        OSError: the run folder has no such file, or it cannot be read.
        RunFileError: it is damaged.
    """
    file = first_offsets_file(run_dir, job)
    try:
        written = json.loads(file.read_text())
    except ValueError as error:
        anew = f"To begin anew, on what is sent from then on: {move_away(run_dir)}"
        raise RunFileError(damaged_file(file, error, anew)) from None
    return {topic: {int(p): offset for p, offset in places.items()} for topic, places in written.items()}


def fix_first_offsets(
    settings: Settings, run_dir: Path, job: str, topics: Sequence[str] = TOPICS
) -> dict[str, dict[int, int]]:
    """Return this run's first offsets of its topics, {topic: {partition: offset}}.

    At the run's first call these are the topics' present ends, which are written to `<job>.start.json` in `run_dir`
    (must exist); later calls return what the file holds, as `first_offsets` does.

    Raises:
        BrokerError: no broker, or a topic is not there.
        OSError: the file cannot be written or read.
        RunFileError: it is damaged.
        ValueError: kafka-python has no such security option.
    """
    if not first_offsets_file(run_dir, job).is_file():
        known = {topic: topic_offsets(settings.kafka, topic) for topic in topics}
        ends = {topic: {p: end for p, (_, end) in places.items()} for topic, places in known.items()}
        write_json(first_offsets_file(run_dir, job), ends)
    return first_offsets(settings, run_dir, job, topics)


def first_offsets(settings: Settings, run_dir: Path, job: str, topics: Sequence[str]) -> dict[str, dict[int, int]]:
    """Return the run's first offsets, and 0 for partitions that were added to some of its topics since.

    Spark begins a new checkpoint only where each partition has its offset.

    Raises:
        BrokerError, OSError, RunFileError, ValueError: as `fix_first_offsets`.
    """
    first = read_first_offsets(run_dir, job)
    there = {topic: dict.fromkeys(topic_offsets(settings.kafka, topic), 0) for topic in topics}
    return {topic: there.get(topic, {}) | places for topic, places in first.items()}


def damaged_file(file: Path, error: ValueError, otherwise: str) -> str:
    """Say that a file of a run's first start is no JSON, and what to do: where there is a backup, and `otherwise`."""
    back = "Move it away, and bring it back from a backup (`tidecast restore FILE --only`, with its path within `var`)"
    return f"{file}: damaged ({error}). {back}. {otherwise}"


def move_away(run_dir: Path) -> str:
    """Return the command that moves a run's folder away, and its checkpoint where that is elsewhere, as on HDFS."""
    folder = run_dir.resolve()
    aside = shlex.join(["mv", f"{folder}", f"{free_name(folder)}"])
    elsewhere = configured_file_system() and not any(folder.rglob("offsets"))
    return f"{aside} && hadoop fs -{aside}" if elsewhere else aside


def why_not_read_again(spark: SparkSession, job: str) -> str:
    """Say why ranges of a managed job cannot be read again; "" where they can."""
    from tidecast.spark.file_system import other_file_system

    other = other_file_system(spark)
    return other and (
        f"{job}: its ranges cannot be read again, as Spark keeps checkpoint and results on {other} (fs.defaultFS) and "
        "a replay of it works on mounted file systems alone"
    )


def replay_if_possible(replay: Replay | None, spark: SparkSession, job: str) -> Replay | None:
    """Return how ranges of a managed job are read again; None, which is said, where they cannot be."""
    if replay is not None and (why := why_not_read_again(spark, job)):
        print(f"{why}. Orders are refused.", flush=True)
        return None
    return replay


def first_offsets_file(run_dir: Path, job: str) -> Path:
    """Return the file of a run's first offsets."""
    return run_dir / f"{job}.start.json"


def _recovery_of(contract: Contract | None) -> RecoveryTerms:
    stated = None if contract is None else contract.backpressure
    return (None if stated is None else stated.recovery) or RecoveryTerms()
