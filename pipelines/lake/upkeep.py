"""Upkeep of the lake: the many small files of the ingests become few, and what no reader can need is removed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from configs.settings import Settings, load
from pipelines.lake.errors import LakeError
from pipelines.lake.folder import Folder, lake_folder
from pipelines.lake.tables import commit_origins, partition_columns, tables
from pipelines.lake.writable import naming_refusals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
FILE_BYTES = 128 << 20
"""A file of this size is left as it is."""


def maintain(settings: Settings | None = None) -> dict[str, int]:
    """Run Delta's VACUUM and OPTIMIZE on the tables of ingests: deletes what was replaced long ago, merges small files.

    Other tables in the same folder are somebody else's, and stay as they are; so does one whose log says nothing sure.
    Files replaced in the last `lake.versions_h` hours stay, so older versions stay readable for as long. Rows and
    commits' origins do not change. One table's trouble stops no other's upkeep, and is raised at the end. Starts a
    local Spark session and stops it; blocks until Spark is done.

    Args:
        settings: as `load()` reads them, where not given.

    Returns:
        Number of files of the newest version, by table; empty where there is no table.

    Raises:
        SettingsError: a setting is wrong.
        JavaError, JarsError: no usable Java; the jars of Delta are missing.
        LakeError: this user may not read a table's log.
        LakeFullError: the lake's file system is full or read-only.
        Exception: as pyspark raises it, where an ingest commits to the same table meanwhile; may be tried again.
        OSError: a table's log cannot be read, or the lake does not answer.
    """
    from pipelines.spark.session import local_session

    settings = settings or load()
    root = lake_folder(settings)
    files, found, failures = dict[str, int](), list[str](), list[Exception]()
    for table in tables(root):
        with _others_go_on(table, failures):
            if _is_ours(root, table):
                found.append(table)
    if found:
        spark = local_session("maintain-lake", delta=True)
        try:
            for table in found:
                with _others_go_on(table, failures), naming_refusals(root / table):
                    files[table] = _maintained(spark, root, table, settings.lake.versions_h)
        finally:
            spark.stop()
    if failures:
        raise failures[0]
    return files


@contextmanager
def _others_go_on(table: str, failures: list[Exception]) -> Iterator[None]:
    """Note what fails of a table, whatever it is: the other tables grow, too."""
    try:
        yield
    except Exception as error:
        _log.error("%s: not maintained, the others go on: %s", table, error)
        failures.append(error)


def _is_ours(root: Folder, table: str) -> bool:
    """Whether an ingest has committed to it, which says so in Delta's log."""
    try:
        return bool(commit_origins(root, table))
    except PermissionError as error:
        raise LakeError(
            f"{root / table}: this user may not read its log, so nobody knows whether an ingest wrote it: {error}. "
            "Give this user the right to read it; where it is somebody else's, it may also be moved out of the lake."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # metadata of others may hold anything
        _log.warning("%s: left as it is, no ingest's by its log (%s: %s)", table, type(error).__name__, error)
        return False


def _maintained(spark: SparkSession, root: Folder, table: str, versions_h: int) -> int:
    path = str(root / table)
    spark.sql(f"VACUUM delta.`{path}` RETAIN {versions_h} HOURS")  # first: what it frees, the others may need
    if partition_columns(root, table):  # of the form that had a folder for every ingest, whose files cannot be merged
        rows = spark.read.format("delta").load(path)
        rows.coalesce(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", FILE_BYTES)
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", FILE_BYTES)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    files = int(spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]["numFiles"])
    _log.info("%s: %d files", table, files)
    return files
