"""The one way into the lake: the rows of one ingest partition and their origin, in one Delta commit."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pipelines.lake.errors import LakeOvertakenError
from pipelines.lake.folder import Folder
from pipelines.lake.tables import QUARANTINE, Origin, commit_origins, exists, newest_version, oldest_version
from pipelines.lake.writable import naming_refusals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS = {QUARANTINE: ("topic", "ingest_partition")}
# Delta forgets the metadata of commits with their log; Kafka keeps the records as long (pipelines.kafka.broker).
_LOG_KEPT = "interval 400 days"
_APPLICATION = "tidecast-ingest"
"""By which Delta knows appends: of two that would come behind the same commit it takes the first, whole."""


def commit_rows(root: Folder, table: str, rows: DataFrame, origin: Origin, behind: int | None = None) -> int:
    """Write the rows of one ingest partition, with their origin, in one Delta commit; at most one file.

    Creates the table where there is none, with a log kept for 400 days; adds columns that it lacks. The partition is
    `origin.partition`, in the table `quarantine` that of `origin.topic` alone.

    Args:
        root: folder of the lake.
        table: name of the table, a folder under the root.
        rows: with the column `ingest_partition` (quarantine: `topic` too), equal to the origin's values.
        origin: written to the commit's metadata; its `version` is not used.
        behind: of a partition that the table's log does not name: Delta version of the newest ingest that it names, -1
            without one. The rows are appended, with half of Spark's jobs. None: they take the place of those that the
            partition has.

    Returns:
        The Delta version of the commit.

    Raises:
        LakeOvertakenError: another ingest has committed to the table behind that version; nothing is committed then.
        LakeFullError: the file system is full or read-only; likewise.
        Exception: as pyspark raises it, where a row is of another partition, or Delta refuses another writer; likewise.
        OSError, ValueError: the table's log cannot be read, or is no JSON.
    """
    keys = {"topic": origin.topic, "ingest_partition": origin.partition}
    own = {name: keys[name] for name in _KEYS.get(table, ("ingest_partition",))}
    since = newest_version(root, table) if behind is None else behind
    since, origin = -1 if since is None else since, replace(origin, version=0)
    order = [name for name in ("topic", "job", "kind", "time") if name in rows.columns]  # neighbours are alike
    writer = (
        (rows if behind is None else _refuse_others(rows, own))
        .coalesce(1)
        .sortWithinPartitions(*order)
        .write.format("delta")
        .option("userMetadata", json.dumps({"origin": asdict(origin)}))
        .option("mergeSchema", "true")
    )
    if behind is None:
        replaced = " AND ".join(f"{name} = '{value}'" for name, value in own.items())
        writer = writer.mode("overwrite").option("replaceWhere", replaced)
    else:
        turn = max(behind + 1, oldest_version(root, table))  # above all turns before, also those of a forgotten log
        writer = writer.mode("append").option("txnAppId", _APPLICATION).option("txnVersion", turn)
    if not exists(root, table):
        writer = writer.option("delta.logRetentionDuration", _LOG_KEPT)
    rows.sparkSession.conf.set("spark.databricks.delta.skipRecordingEmptyCommits", "false")  # as all may be refused
    try:
        with naming_refusals(root / table):
            writer.save(str(root / table))
    except Exception as error:
        if any(replace(one, version=0) != origin for one in commit_origins(root, table, since)):
            raise _overtaken(root, table, origin, since) from error
        raise
    # Delta writes nothing, and says nothing, where another append had this turn before it looked.
    for one in commit_origins(root, table, since):
        if replace(one, version=0) == origin:
            return one.version
    raise _overtaken(root, table, origin, since)


def _refuse_others(rows: DataFrame, own: dict[str, str]) -> DataFrame:
    """The rows; one of another partition ends the write, as it does where Delta replaces rows."""
    from pyspark.sql import functions as F

    name = "ingest_partition"
    fits = reduce(and_, (F.col(column).eqNullSafe(value) for column, value in own.items()))
    said = F.concat(F.lit(f"a row that is not of {own}: {name}="), F.col(name).cast("string"))
    return rows.withColumn(name, F.when(fits, F.col(name)).otherwise(F.raise_error(said)))


def _overtaken(root: Folder, table: str, origin: Origin, since: int) -> LakeOvertakenError:
    return LakeOvertakenError(
        f"{root / table}: another ingest has committed behind version {since}, after {origin.partition} had looked up "
        "its offsets, and nothing of this one is stored. Run it again: it takes what that one left."
    )
