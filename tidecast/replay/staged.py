"""A range of a table, copied once beside the replay into small files in the order of time.

A stream of a table reads whole files in the order in which they were written: too much at once for a replay that is to
be paced by records, and out of order for a plan that counts late records as late. The copy has neither fault: its files
hold so many records that their number is the rate's measure, and each record once. It is made by one batch, in the
replays' pool, and goes with the replay.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from tidecast.orders import ReplayOrder
from tidecast.replay.table import COLUMNS, RecordTableError, in_range, read_table
from tidecast.spark.file_system import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, MADE, LIST = "rows", "being made", "files.json"
LEAST_ROWS = 200
"""Records of a file where the range is small: a batch reads one file at least."""
MOST_FILES = 2_000
MOST_TASKS = 200
_FIRST_S = 1_000_000_000
"""Time of the first file; each has a second more, because a stream reads files in the order of their times."""


def rows_at_once(order: ReplayOrder) -> int:
    """Return how many records of an order's range a staged file, or a task that is not paced, holds at most."""
    return max(LEAST_ROWS, math.ceil(order.records / MOST_FILES))


def stage(spark: SparkSession, order: ReplayOrder, folder: Path) -> Path:
    """Copy an order's range, unless that is done; returns the folder of the files.

    Args:
        spark: with Delta, if the order's table is one.
        order: with a table.
        folder: of the replay's own.

    Raises:
        RecordTableError: the table cannot be read, or holds none of the range.
        Exception: as pyspark raises it; nothing is staged then.
    """
    rows, listed = folder / ROWS, folder / LIST
    if listed.exists():
        return rows
    for left in (rows, folder / MADE):
        shutil.rmtree(left, ignore_errors=True)
    most = rows_at_once(order)
    found = read_table(spark, order.table).select(*COLUMNS).where(in_range(order))
    found = found.dropDuplicates(["topic", "partition", "offset"])
    tasks = min(math.ceil(order.records / most), MOST_TASKS)
    ordered = found.repartitionByRange(max(tasks, 1), "timestamp").sortWithinPartitions("timestamp", "offset")
    ordered.write.option("maxRecordsPerFile", most).parquet(str(folder / MADE))
    files = sorted((folder / MADE).glob("part-*.parquet"))
    rows.mkdir()
    for number, file in enumerate(files):
        at = rows / f"{number:06d}.parquet"
        file.rename(at)
        os.utime(at, (_FIRST_S + number, _FIRST_S + number))
    shutil.rmtree(folder / MADE)
    if not files:
        raise RecordTableError(f"{order.table} holds no record of replay {order.id}: give another range or table")
    write_whole(listed, json.dumps({"files": len(files)}))
    return rows


def staged_stream(spark: SparkSession, order: ReplayOrder, folder: Path) -> DataFrame:
    """Return an order's range of a table as a stream with the columns of Spark's Kafka source; a file a batch at first.

    Raises:
        RecordTableError, Exception: as `stage`.
    """
    from pyspark.sql import functions as F

    rows = stage(spark, order, folder)
    schema = ", ".join(f"{name} {its}" for name, its in COLUMNS.items())
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(rows))
    return stream.withColumn("timestampType", F.lit(0))


class StagedRange:
    """How much of a staged range a query has committed, from its checkpoint."""

    def __init__(self, query: Any) -> None:
        """Follow a query that reads `staged_stream`, and nothing else."""
        self._execution = query._jsq.streamingQuery()
        self._newest, self._read, self._all = -1, 0, 0

    def files(self) -> tuple[int, int]:
        """Return the files that are committed, and all; (0, 0) before the query has read any.

        Raises:
            OSError, ValueError, KeyError: Spark's logs are not as expected, or the list of the files is damaged.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        checkpoint = Path(urlparse(self._execution.resolvedCheckpointRoot()).path)
        newest = max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1)
        if newest > self._newest:
            upto = json.loads((checkpoint / "offsets" / str(newest)).read_text().splitlines()[-1])["logOffset"]
            taken = [one for one in _entries(checkpoint / "sources" / "0") if one["batchId"] <= upto]
            self._read = len({one["path"] for one in taken})
            if taken:
                # Spark's log has a URL, where a space is %20; the checkpoint's root above is none.
                self._all = _listed(Path(unquote(urlparse(taken[0]["path"]).path)).parent.with_name(LIST))
            self._newest = newest
        return self._read, self._all


def _listed(path: Path) -> int:
    """How many files are staged; which of them are read stands in the checkpoint, so they are not staged again."""
    try:
        return int(json.loads(path.read_text())["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecordTableError(f"{path} is damaged ({error}): cancel the replay, then order it again") from None


def _entries(log: Path) -> list[dict[str, Any]]:
    """What Spark's log of a source of files has: one line per file, in files by batch; each tenth holds all before.

    Older ones than the newest of these are not read: Spark may delete one at any time.
    """
    files = [path for path in log.glob("[0-9]*") if path.stem.isdigit()]
    whole = max((int(path.stem) for path in files if path.suffix), default=-1)
    newest = [path.read_text() for path in files if int(path.stem) >= whole]
    lines = [line for text in newest for line in text.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]
