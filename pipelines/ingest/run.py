"""One ingest: for every topic take the partition's offsets, read, judge, commit; then look whether a load changed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from configs.contract import jobs_with_contract
from configs.settings import Settings, load
from pipelines.airflow.drifts import DriftEvent
from pipelines.ingest import partition as names
from pipelines.ingest.clock import ClockError, refuse_if_behind
from pipelines.ingest.columns import KINDS
from pipelines.ingest.counts import count_kept, count_nothing, count_range, no_counts
from pipelines.ingest.drift import find_drift_events
from pipelines.ingest.offsets import (
    OffsetsError,
    Range,
    Topic,
    find_unfinished,
    in_quarantine,
    plan_quarantine,
    plan_range,
    read_history,
)
from pipelines.ingest.quality import QualityError, apply_rules, great_expectations
from pipelines.kafka import broker, topics
from pipelines.kafka.spark import spark_options
from pipelines.lake import tables as lake
from pipelines.lake.commit import commit_rows
from pipelines.lake.errors import LakeOvertakenError
from pipelines.lake.file_lake import plain_lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.writable import refuse_read_only

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
"""Threads of a session, or executors of it on a cluster."""
_IDENTITY = ("kafka_partition", "kafka_offset")
_log = logging.getLogger(__name__)


def ingest(
    partition: str, skip_lost: bool = False, reported: Sequence[Any] = ()
) -> tuple[dict[str, dict[str, Any]], list[DriftEvent]]:
    """Write the records that every topic got since its last commit to the lake, then check the loads for drift.

    Invalid records go to the table `quarantine`. A second run under the same name reads the same offsets again and
    writes the same rows; where a topic, as one that keeps each key's newest, no longer has all, they stay as they are.
    Starts a Spark session on `ingest.master` if there is anything to read, and stops it.

    Args:
        partition: name of the ingest partition: an hour `2014-10-22T04`, an interval of hours
            `2014-09-24T04/2014-10-22T04` or a moment `2014-10-22T042031`, UTC.
        skip_lost: go on behind records that the broker deleted before they were ingested.
        reported: drift events of earlier runs; each drift is reported once. What is none is left out.

    Returns:
        First, by topic: `read`, `stored`, `quarantined` (numbers of rows), `warnings` (rows by column), `offsets`
        ({Kafka partition: [start, end)}), `version` (of the Delta table; None while none is known), `again` (whether it
        was a re-run), `trouble` (why nothing of it was taken, e.g. as the broker no longer has the records, its table
        is damaged or may not be written, its quality gate failed or this computer's clock seems to be behind, or why no
        drifts were looked for; else empty: one topic's stops no other, and `refuse_troubles` raises it). An earlier
        partition that had to be finished first is left out. Second, the new drift events (`drift.newest_drift` has
        their keys), at most one per job; none where no metrics were stored. A job whose times span over 10⁶ steps is
        logged and not checked.

    Raises:
        PartitionError: the name is none of these, or its hour is not over.
        LakeError: the lake cannot be written.
        LakeFullError: its file system is full, or has become read-only, and no metrics could be stored.
        LakeOvertakenError: another ingest took records of the topic meanwhile; earlier topics stay.
        BrokerError: no broker, or no such topic; a look-up takes over 30 s or is refused.
        SettingsError, ValueError: a setting is wrong; a security option is unknown.
        JavaError, JarsError: no usable Java; the jars of Delta or of the Kafka connector are missing.
        OSError: the log of a table cannot be read now, or `var/spark` not be created.
        Exception: as pyspark raises it, where Kafka cannot be read or another writer commits, see `ingest_ranges`.
    """
    from pipelines.spark.query_session import query_session

    settings = load()
    refuse_read_only(lake_folder(settings))
    names.validate_name(partition, datetime.now(UTC))
    ranges, troubled, now = [], {}, time.time()
    for topic in KINDS:
        try:
            ranges += plan_topic(settings, topic, partition, now, skip_lost)
        except OffsetsError as error:
            _log.error("%s: %s", topic, error)
            troubled[topic] = no_counts(settings, topic, str(error))
    if not any(r.is_due for r in ranges):
        return {r.topic: count_nothing(settings, r) for r in ranges} | troubled, []
    import_module("pyspark.sql")  # where two threads begin to import it at once, one may find it half made
    with ThreadPoolExecutor(1) as pool:
        pool.submit(great_expectations)  # seconds, while the JVM starts
        spark = query_session("tidecast-ingest", settings, CORES, settings.ingest.master, delta=True)
    try:
        counts = ingest_ranges(spark, settings, ranges) | troubled
        if not counts["metrics"]["stored"]:
            return counts, []
        try:
            # By files where that can be: of each job Spark would read twice, for half a second at least.
            readable = plain_lake(lake_folder(settings)) or lake.Lake(spark, lake_folder(settings))
            spans = lake.job_spans_s(lake_folder(settings))
            jobs = [job for job in jobs_with_contract(settings.contracts_dir) if spans.get(job)]
            drifts, wrong = find_drift_events(readable, settings, jobs, reported)
        except Exception as error:  # the rows are stored, which those have to be told who train on them
            _log.exception("drifts were not looked for")
            drifts, wrong = [], {"all jobs": f"{type(error).__name__}: {error}"}
        if wrong:
            said = f"drifts of {', '.join(wrong)} were not looked for, the next run does: {next(iter(wrong.values()))}"
            counts["metrics"]["trouble"] = f"its rows are stored; {said}".splitlines()[0]
        return counts, drifts
    finally:
        spark.stop()


def plan_ranges(settings: Settings, partition: str, now: float) -> list[Range]:
    """Return the ranges of offsets to ingest, topic by topic, see `plan_topic`; one in trouble raises for all."""
    return [r for topic in KINDS for r in plan_topic(settings, topic, partition, now)]


def plan_topic(settings: Settings, topic: str, partition: str, now: float, skip_lost: bool = False) -> list[Range]:
    """Return the ranges of a topic's offsets to ingest; asks the broker and reads the lake's log, without Spark.

    Where an earlier run ended before it stored the refused rows of a topic's newest partition, these come first.

    Args:
        settings: of broker and lake.
        topic: one of `KINDS`.
        partition: name of the ingest partition.
        now: epoch seconds, wall time.
        skip_lost: go on behind records that the broker deleted before they were ingested.

    Raises:
        OffsetsError: the broker no longer has the records, or has another topic of that name; or a table's log is
            damaged, or may not be read.
        BrokerError: no broker is set or answers within 10 s (30 s for a look-up), it refuses, or no such topic.
        OSError, ValueError: a table's log cannot be read now; an unknown security option.
    """
    commits = read_history(lake_folder(settings), topic)
    kafka = settings.kafka
    at_broker = Topic(topic, kafka.topic(topic), topics.topic_id(kafka, topic), broker.topic_offsets(kafka, topic))
    unfinished = find_unfinished(lake_folder(settings), at_broker.id, commits)
    found = [] if unfinished is None else [plan_quarantine(at_broker, unfinished, skip_lost)]
    if unfinished is None or unfinished.partition != partition:
        found.append(plan_range(at_broker, partition, commits, now, skip_lost))
    return found


def ingest_ranges(spark: SparkSession, settings: Settings, ranges: list[Range]) -> dict[str, dict[str, Any]]:
    """Read, validate and commit every range, in order; nothing of one whose gate fails or by which the clock is behind.

    Topics that met an error are taken once more behind the others where metrics are stored: most errors pass.

    Returns:
        By topic, the counts that `ingest` returns; of a topic with two ranges, those of the second, or the trouble of
        the first: then the second is left, as nobody would look for the first one's refused rows behind it.

    Raises:
        LakeOvertakenError: another ingest took records of a topic; ranges before are committed.
        Exception: the first that a topic met, where no metrics are stored that wait to be trained on, so that all may
            be tried again at once; what can be of the other topics is committed.
    """
    counts, failed = _take_each(spark, settings, ranges)
    if failed and not counts.get("metrics", {}).get("stored"):
        raise next(iter(failed.values()))
    return counts | _take_each(spark, settings, [r for r in ranges if r.topic in failed])[0]


def _take_each(
    spark: SparkSession, settings: Settings, ranges: Sequence[Range]
) -> tuple[dict[str, dict[str, Any]], dict[str, Exception]]:
    counts, failed = dict[str, dict[str, Any]](), dict[str, Exception]()
    for r in ranges:
        if r.topic in counts and counts[r.topic]["trouble"]:
            continue
        try:
            counts[r.topic] = _take(spark, settings, r) if r.is_due else count_nothing(settings, r)
        except (ClockError, OffsetsError, QualityError) as error:
            _log.error("%s: %s", r.topic, error)
            counts[r.topic] = no_counts(settings, r.topic, str(error))
        except LakeOvertakenError:
            raise
        except Exception as error:  # as where this user may not write its table
            _log.exception("%s", r.topic)
            failed[r.topic] = error
            counts[r.topic] = no_counts(settings, r.topic, f"{type(error).__name__}: {error}".splitlines()[0])
    return counts, failed


def _take(spark: SparkSession, settings: Settings, r: Range) -> dict[str, Any]:
    from pipelines.ingest.parse import parse_records, quality_rules, select_quarantined, select_stored

    kind, root = KINDS[r.topic], lake_folder(settings)
    rows = parse_records(_records(spark, settings, r), kind, r.judged_at).localCheckpoint()
    verdict = apply_rules(rows, quality_rules(r.judged_at), _IDENTITY)
    if r.recorded is not None and verdict.read < r.recorded.stored + r.recorded.quarantined:
        return count_kept(r, r.recorded, verdict.read)
    if verdict.refused and not r.is_rerun:
        refuse_if_behind(rows, kind, r.judged_at, settings.contracts_dir)
    if (begun := r.unfinished) is not None:
        bad, origin = select_quarantined(verdict.bad, r.topic, r.partition), replace(begun, quarantined=verdict.refused)
        commit_rows(root, lake.QUARANTINE, bad, origin)  # perhaps no row: all the same the partition is ended
        _log.log(
            logging.WARNING if verdict.refused < begun.quarantined else logging.INFO,
            "%s %s: %d of %d refused records reached the quarantine, %d were deleted by the broker before; the %d "
            "accepted ones had been stored", r.topic, r.partition, verdict.refused, begun.quarantined,
            begun.quarantined - verdict.refused, begun.stored,
        )  # fmt: skip
        return count_range(r, begun.version, verdict.read, begun.stored, verdict.refused, verdict.warnings)
    good = select_stored(verdict.good, kind, r.partition)
    origin = lake.Origin(
        r.topic, r.topic_id, r.partition, r.start, r.end, r.judged_at, verdict.kept, verdict.refused,
        _spans(good) if r.topic == "metrics" else {},
    )  # fmt: skip
    # The table first: its commit moves the offsets. Should the second fail, `find_unfinished` does.
    version = commit_rows(root, r.topic, good, origin, r.behind)
    if verdict.refused or (r.is_rerun and in_quarantine(root, origin)):
        commit_rows(root, lake.QUARANTINE, select_quarantined(verdict.bad, r.topic, r.partition), origin)
    counts = count_range(r, version, verdict.read, verdict.kept, verdict.refused, verdict.warnings)
    _log.info("%s %s: %s", r.topic, r.partition, counts)
    return counts


def _records(spark: SparkSession, settings: Settings, r: Range) -> DataFrame:
    """The range's records as Spark's Kafka source gives them."""
    source = spark.read.format("kafka").options(**spark_options(settings.kafka))
    name = settings.kafka.topic(r.topic)
    return (
        source.option("assign", json.dumps({name: sorted(r.end)}))
        .option("startingOffsets", json.dumps({name: r.start}))
        .option("endingOffsets", json.dumps({name: r.end}))
        .load()
    )


def _spans(good: DataFrame) -> dict[str, float]:
    rows = good.where("kind = 'interval'").groupBy("job").sum("span_s").collect()
    return {row[0]: row[1] for row in rows}
