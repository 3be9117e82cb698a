"""Which records of a time range a table holds that keeps a topic's records; what it does not hold is refused."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from configs.sections import Kafka
from pipelines.backfill.asked import RangeError, TimeRange, check_moments, told_moment
from pipelines.backfill.held import CopiedPartition, HeldTopic, check_copied
from pipelines.backfill.ranges import OffsetRange, find_offsets
from tidecast.orders import ReplayOrder
from tidecast.replay.table import RecordTableError, read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_range(kafka: Kafka, topics: Sequence[str], asked: TimeRange, table: Path | None = None) -> OffsetRange:
    """Find the offsets of all records whose event time may lie in a range: on topics, or in a table of their records.

    A table is read by a Spark session in this process, which takes seconds to start.

    Args:
        kafka: as in `find_offsets`, and so is `asked`.
        topics: their whole names, one at least; of several, any may hold no record of the range, but not all.
        asked: likewise.
        table: absolute path of a Delta or Parquet table with the columns of Spark's Kafka source; None: the topics.

    Raises:
        RangeError: as `find_offsets`; or there is no such table, it has other columns, or does not hold the range.
        BrokerError, ValueError: as `find_offsets`.
        JavaError, JarsError: Spark cannot be started.
    """
    if not topics:
        raise RangeError("--topic names no topic: give its name, or leave it out for the job's own events")
    several = len(topics) > 1
    if table is None:
        return _joined([find_offsets(kafka, topic, asked, several) for topic in topics], asked)
    from pipelines.spark.session import local_session

    check_moments(asked)
    if not table.is_dir():
        raise RangeError(f"{table} is no folder: give the path of a Delta or Parquet table")
    held = [HeldTopic.about(kafka, topic, asked) for topic in topics]
    spark = local_session("tidecast backfill", delta=True)
    try:
        return _joined([find_in_table(spark, table, one, asked, several) for one in held], asked)
    finally:
        spark.stop()


def _joined(parts: Sequence[OffsetRange], asked: TimeRange) -> OffsetRange:
    """Return the ranges of topics as one; refused where none of them holds a record."""
    starts = {topic: offsets for part in parts for topic, offsets in part.starts.items()}
    found = OffsetRange(starts, {topic: offsets for part in parts for topic, offsets in part.ends.items()})
    if not found.records:
        span = f"{asked.told(asked.begin)} to {asked.told(asked.until)}"
        raise RangeError(f"none of the topics {', '.join(starts)} holds a record produced from {span}")
    return found


def find_in_table(
    spark: SparkSession, table: Path, held: HeldTopic, asked: TimeRange, may_be_empty: bool = False
) -> OffsetRange:  # fmt: skip
    """Find the offsets of a range in a table; of partitions without a record of it an empty range.

    Args:
        spark: with Delta, if the table is one.
        table: absolute path.
        held: what the topic, whose name stands in the table, still says of the range.
        asked: the range.
        may_be_empty: as in `find_offsets`.

    Raises:
        RangeError: the range is empty or in the future; the table is none, has other columns, holds nothing of the
            topic or range, or a part of the range only, also of one partition.
    """
    from pyspark.sql import functions as F

    check_moments(asked)
    begin, end, until, told, name = asked.begin, asked.end, asked.until, asked.told, held.name
    try:
        records = read_table(spark, str(table)).where(F.col("topic") == name)
    except RecordTableError as error:
        raise RangeError(f"{error}.") from None
    at = F.unix_millis("timestamp")
    inside = (at >= int(begin * 1000)) & (at < int(until * 1000))
    rows = records.groupBy("partition").agg(
        F.min("offset").alias("kept"), F.min_by(at, "offset").alias("first"), F.max_by(at, "offset").alias("last"),
        F.min(F.when(inside, F.col("offset"))).alias("begin"), F.max(F.when(inside, F.col("offset"))).alias("end"),
        F.max("offset").alias("newest"),
    ).collect()  # fmt: skip
    if not rows and not (may_be_empty and held.parts):
        raise RangeError(f"{table} holds no record of topic {name!r}: give another table, or --topic")
    oldest = max((row["first"] for row in rows if row["kept"] > 0), default=0) / 1000
    newest = max((row["last"] for row in rows), default=0) / 1000
    if oldest > begin:
        raise RangeError(
            f"{table} does not hold all of topic {name!r} from {told(begin)}: its records begin at {told(oldest)}. "
            f"Give --from {asked.told_after(oldest)}, or another table"
        )
    if held.parts:
        copied = {row["partition"]: CopiedPartition(row["newest"] + 1, row["last"] / 1000) for row in rows}
        check_copied(table, held, copied, asked)
    elif newest < end - asked.slack_s:  # quieter than that is no topic that somebody reads again
        raise RangeError(
            f"{table} holds topic {name!r} until {told(newest)}, and the range ends at {told(end)}. Give --to "
            f"{told(newest)}, and read the rest from the topic, without --table"
        )
    found = [row for row in rows if row["begin"] is not None]
    if not found and not may_be_empty:
        raise RangeError(f"{table} holds no record of topic {name!r} produced from {told(begin)} to {told(until)}")
    past = {number: part.until for number, part in held.parts.items()}
    quiet = {str(number): at for number, at in (past or {row["partition"]: row["newest"] + 1 for row in rows}).items()}
    starts = quiet | {str(row["partition"]): int(row["begin"]) for row in found}
    ends = quiet | {str(row["partition"]): int(row["end"]) + 1 for row in found}
    return OffsetRange({name: starts}, {name: ends})


def table_for(
    orders: Mapping[str, ReplayOrder], topics: Collection[str], begin: float, stated: Mapping[str, str]
) -> str:
    """Say which table may have what a job's topics no longer hold; "" where none is known.

    The one that its contract names comes first, then one that held these topics when an earlier range was ordered from
    it: of several the one whose range began nearest to this one. None is opened, which takes Spark: whether it holds
    this range, too, is found once that is ordered from it.

    Args:
        orders: of the job, by id.
        topics: whole names of what is to be read, all of which the table has.
        begin: of the range, the job's own time, epoch seconds.
        stated: tables that the job's contract names, by topic; none: it names none.
    """
    table, why_not = _of_contract(stated, topics)
    place = os.path.realpath(table) if table else ""
    known = [
        (abs(one.begin_ms / 1000 - begin), one.id, one.table, one.begin_ms / 1000, one.end_ms / 1000)
        for one in orders.values()
        if one.table
        and one.begin_ms is not None
        and one.end_ms is not None
        and {*topics} <= {*one.starts}
        and (one.table == place if place else os.path.isdir(one.table))
    ]
    said = ["is the one that the job's contract names (backpressure.tables)"] if table else []
    if known:
        _, name, earlier, since, until = min(known)
        said.append(f"held {told_moment(since)} to {told_moment(until)} when replay {name!r} of this job was ordered")
        table = table or earlier
    if not table:
        return why_not
    given = f"give it (--table {table}, or Table in the form)"
    return f"{why_not}. Table {table} {', '.join(said)}, and was not opened now: {given}"


def _of_contract(stated: Mapping[str, str], topics: Collection[str]) -> tuple[str, str]:
    """The table that a contract names for all topics of a range; or "", and why what it names does not serve."""
    if not stated:
        return "", ""
    if lacking := [topic for topic in topics if topic not in stated]:
        names = f"a table of {', '.join(stated)} and none of {', '.join(lacking)}"
        return "", f". The job's contract names {names} (backpressure.tables): state it there, if there is one"
    tables = list(dict.fromkeys(stated[topic] for topic in topics))
    if len(tables) > 1:
        names = f"several tables of these topics, {', '.join(tables)}"
        return "", (
            f". The job's contract names {names} (backpressure.tables): copy what is to be read into one table, and "
            "state that for each of them"
        )
    if not os.path.isdir(tables[0]):
        why = "is no folder here: mount it where tidecast runs, or correct the contract"
        return "", f". Table {tables[0]}, which the job's contract names (backpressure.tables), {why}"
    return tables[0], ""
