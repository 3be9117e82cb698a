"""The lake: Delta tables of what was measured, forecast, decided and done; sole owner of Delta and the paths.

Rows are written one named partition at a time; its name is a column and no folder, so that files can be merged. The
Delta commit that writes them says which offsets of which topic they came from: both are kept, or neither. On HDFS
whatever looks into the log raises LakeError where this user may not, and LakeAwayError where nobody answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.lake.errors import LakeError
from pipelines.lake.folder import Folder, read_texts

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from models.forecast.core.series import Series

QUARANTINE = "quarantine"
SERVED = ("version", "model", "kind", "time", "wall_time", "step_s", "levels", "quantiles")


@dataclass(frozen=True)
class Origin:
    """Where the rows of one partition came from; kept in the metadata of the commit that wrote them.

    Attributes:
        topic: whose records they are.
        topic_id: tells it from a topic of the same name on another broker.
        partition: name of the partition.
        start: first offset of every Kafka partition.
        end: offset behind the last one.
        judged_at: epoch seconds of wall time that the gate judged by.
        stored: rows in the topic's table.
        quarantined: rows in the quarantine table.
        spans: seconds of job time of the intervals stored, by job (metrics only).
        version: of the Delta table; 0 until it is written.
    """

    topic: str
    topic_id: str
    partition: str
    start: dict[int, int]
    end: dict[int, int]
    judged_at: float
    stored: int
    quarantined: int
    spans: dict[str, float] = field(default_factory=dict)
    version: int = 0


def exists(root: Folder, table: str) -> bool:
    """Return whether anything was ever committed to the table; reads its log without Spark."""
    return any(_commits(root, table))


def commit_origins(root: Folder, table: str, behind: int = -1) -> list[Origin]:
    """Return the origin of every ingest partition's newest commit to a table, newest first, from Delta's log.

    An origin says which offsets of which topic the rows came from. Needs no Spark. Empty where there is no such table;
    commits without an origin (OPTIMIZE, VACUUM) are left out.

    Args:
        root: folder of the lake.
        table: name of the table.
        behind: commits up to this Delta version are left out, and not read.

    Raises:
        OSError: a file of the log cannot be read.
        ValueError: a file of the log is no JSON.
        KeyError, TypeError: an origin lacks a field of `Origin`, or has another.
    """
    found: dict[tuple[str, str], Origin] = {}
    paths = sorted((path for path in _commits(root, table) if int(path.stem) > behind), reverse=True)
    for path, text in zip(paths, read_texts(paths), strict=True):
        if (origin := _origin(int(path.stem), text)) is not None:
            found.setdefault((origin.topic, origin.partition), origin)
    return list(found.values())


def newest_version(root: Folder, table: str) -> int | None:
    """Return the newest Delta version of the table; None where there is none."""
    return max((int(path.stem) for path in _commits(root, table)), default=None)


def oldest_version(root: Folder, table: str) -> int:
    """Return the oldest Delta version that the table's log still has; 0 where there is none."""
    return min((int(path.stem) for path in _commits(root, table)), default=0)


def partition_columns(root: Folder, table: str) -> list[str]:
    """Return the Delta partition columns of a table, from its log; empty for a table of today's layout, or for none.

    Tables of an older layout have some until `pipelines.lake.upkeep.maintain` has rewritten them.

    Raises:
        OSError: a file of the log cannot be read.
        ValueError, KeyError: the newest metadata in the log are no JSON, or lack the columns.
    """
    for text in read_texts(sorted(_commits(root, table), reverse=True)):
        for line in text.split("\n"):
            if line.startswith('{"metaData"'):
                return list(json.loads(line)["metaData"]["partitionColumns"])
    return []


def tables(root: Folder) -> list[str]:
    """List the names of the tables under a folder, sorted; what this user may not look into is none."""
    return sorted(folder.name for folder in root.glob("*") if _has_log(folder))


def job_spans_s(root: Folder) -> dict[str, float]:
    """Return {job: seconds of job time that the lake holds of its load}; reads the log once, without Spark."""
    spans: dict[str, float] = {}
    for origin in commit_origins(root, "metrics"):
        spans |= {job: spans.get(job, 0.0) + span_s for job, span_s in origin.spans.items()}
    return spans


def job_span_s(root: Folder, job: str) -> float:
    """Return of one job what `job_spans_s` does of all, 0 for none; the whole log is read for it."""
    return job_spans_s(root).get(job, 0.0)


class Lake:
    """Reads the tables under one folder."""

    def __init__(self, spark: SparkSession, root: Folder) -> None:
        self._spark = spark
        self.root = root

    def read_table(self, table: str, at: int | None = None) -> DataFrame:
        """Return a table as a Spark DataFrame, read lazily: its newest Delta version, or version `at`.

        Raises:
            LakeError: nothing was ever ingested into it.
            AnalysisException: Delta no longer has that version.
        """
        if not exists(self.root, table):
            raise LakeError(f"{self.root} has no table {table!r}. Run the DAG ingest_metrics, which fills it.")
        reader = self._spark.read.format("delta")
        return (reader if at is None else reader.option("versionAsOf", at)).load(str(self.root / table))

    def read_loads(
        self, jobs: Sequence[str], step_s: float, newest_s: float | None = None, leave_out: bool = False
    ) -> tuple[dict[str, Series], int]:
        """Read jobs' loads as series of time steps; runs a Spark job.

        Args:
            jobs: names; those without rows are missing from the result.
            step_s: seconds of job time per step.
            newest_s: records are read that end in so many seconds before a job's newest end; None: all.
            leave_out: whether a job whose times span too many steps is logged and left out.

        Returns:
            {job: series in records/s, NaN where less than half of a step is covered}; the Delta version that was read.

        Raises:
            LakeError: nothing was ever ingested.
            SeriesError: the times of a job span more than 10⁶ steps, unless it is left out.
            Exception: as pyspark raises it, where a file cannot be read.
        """
        from pipelines.lake.steps import mean_loads, newest_records

        at = newest_version(self.root, "metrics") or 0
        rows = self.read_table("metrics", at).where("kind = 'interval' AND arrival_rps IS NOT NULL")
        rows = rows.where(rows["job"].isin(list(jobs)))
        return mean_loads(rows if newest_s is None else newest_records(rows, newest_s), step_s, leave_out), at

    def read_served_forecasts(self, job: str, since: float) -> pd.DataFrame:
        """Read a job's forecasts whose first step begins after `since`, epoch seconds of job time; runs a Spark job.

        That moment is one of the job's load and not of the newest forecast, which a wrong clock may have put years
        later. If a model version issued several with the same `time` and `step_s`, only the first is returned.

        Returns:
            Columns version (text), model, kind, time (epoch seconds of job time at which the first step begins),
            wall_time (epoch seconds of issue), step_s (seconds), levels (list of quantile levels), quantiles
            (records/s, a list per step ahead of a list per level); by wall_time, oldest first; may be empty.

        Raises:
            LakeError: there is no table `forecasts`.
            Exception: as pyspark raises it, where a file cannot be read.
        """
        import pandas as pd
        from pyspark.sql import functions as F

        mine = self.read_table("forecasts").where((F.col("job") == job) & (F.col("time") > since))
        kept = mine.groupBy("version", "time", "step_s").agg(F.min_by(F.struct(*SERVED), "wall_time").alias("first"))
        rows = [row.asDict() for row in kept.select("first.*").orderBy("wall_time").toLocalIterator()]  # lists stay
        return pd.DataFrame(rows, columns=list(SERVED))


def _has_log(folder: Folder) -> bool:
    try:
        return (folder / "_delta_log").exists()
    except (PermissionError, LakeError):
        return False


def _commits(root: Folder, table: str) -> Iterator[Folder]:
    return (path for path in (root / table / "_delta_log").glob("*.json") if path.stem.isdigit())


def _origin(version: int, commit: str) -> Origin | None:
    """The origin in a commit's metadata; None for commits of other makers, as OPTIMIZE or a person with a note."""
    lines = commit.split("\n")  # and not wherever a line of text ends: Delta writes U+2028 as it is
    info = json.loads(next((line for line in lines if '"commitInfo"' in line), "{}")).get("commitInfo", {})
    try:
        noted = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return None
    origin = noted.get("origin") if isinstance(noted, dict) else None
    if not isinstance(origin, dict):
        return None
    offsets = {name: {int(p): at for p, at in origin[name].items()} for name in ("start", "end")}
    return Origin(**{**origin, **offsets, "version": version})
