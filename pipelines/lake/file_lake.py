"""The lake for whoever only reads it: by its files, for a JVM takes seconds to start; by Spark where it has to be."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from pipelines.lake.errors import LakeError
from pipelines.lake.folder import Folder
from pipelines.lake.steps import loads_of_sums, newest_frames, sum_records
from pipelines.lake.table_files import TableFiles, table_files
from pipelines.lake.tables import SERVED, Lake, exists

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from models.forecast.core.series import Series

READ = ("metrics", "forecasts", "outcomes")
"""Tables that are read so."""
Filters = Sequence[tuple[str, str, Any]]
"""Conditions that a row has to meet, all of them: column, function of `operator` such as `eq`, value."""


def plain_lake(root: Folder) -> FileLake | None:
    """Return the lake as its files are now; None where `table_files` can say of a table that is there no files.

    Raises:
        OSError, ValueError: a file of a table's log cannot be read, or is no JSON.
    """
    found = {table: table_files(root, table) for table in READ if exists(root, table)}
    plain = {table: files for table, files in found.items() if files is not None}
    return FileLake(root, plain) if len(plain) == len(found) else None


@contextmanager
def opened_lake(root: Folder, app: str) -> Iterator[SparkLake | FileLake]:
    """Context manager: the lake for reading; a local Spark session is started, and stopped, only where it takes one.

    It does where there is no `plain_lake`: on HDFS, above all.

    Args:
        root: folder of the lake.
        app: name of Spark's application.

    Raises:
        JavaError, JarsError: Spark is needed, and there is no usable Java, or the jars of Delta are missing.
        SettingsError: likewise, and a setting is wrong.
        OSError, ValueError: a file of a table's log cannot be read, or is no JSON.
    """
    if (lake := plain_lake(root)) is not None:
        yield lake
        return
    from pipelines.spark.session import local_session

    spark = local_session(app, delta=True)
    try:
        yield SparkLake(spark, root)
    finally:
        spark.stop()


class SparkLake(Lake):
    """A `Lake` with the other methods of `FileLake`."""

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns.

        Raises:
            LakeError: nothing was ever ingested into it.
        """
        return list(self.read_table(table).columns)

    def newest_rows(self, table: str, columns: Sequence[str], filters: Filters, newest: int) -> pa.Table:
        """Read the rows of greatest `wall_time`, which is among the columns, the newest first; runs a Spark job.

        Raises:
            LakeError: nothing was ever ingested into it.
            Exception: as pyspark raises it, where a file cannot be read.
        """
        from pyspark.sql import functions as F

        rows = self.read_table(table)
        for column, compare, value in filters:
            rows = rows.where(getattr(operator, compare)(F.col(column), value))
        return rows.select(*columns).orderBy(F.desc("wall_time")).limit(newest).toArrow()


class FileLake:
    """Reads tables under one folder, each in the version that its files were listed of; as `Lake` reads them."""

    def __init__(self, root: Folder, files: dict[str, TableFiles]) -> None:
        self.root = root
        self._files = files

    def read_loads(
        self, jobs: Sequence[str], step_s: float, newest_s: float | None = None, leave_out: bool = False
    ) -> tuple[dict[str, Series], int]:
        """Read jobs' loads as series of time steps, see `Lake.read_loads`; memory holds one batch of records at a time.

        Raises:
            LakeError: nothing was ever ingested.
            SeriesError: the times of a job span more than 10⁶ steps, unless it is left out.
            OSError: a file cannot be read.
        """
        columns = ("job", "time", "span_s", "arrival_rps")

        def frames(since: float) -> Iterator[pd.DataFrame]:
            batches = self._batches("metrics", columns, [("kind", "eq", "interval"), ("time", "ge", since)], jobs)
            return (batch.to_pandas().dropna() for batch in batches)

        sums = sum_records(frames(-math.inf) if newest_s is None else newest_frames(frames, newest_s), step_s)
        return loads_of_sums(sums, step_s, leave_out), self._files_of("metrics").version

    def read_served_forecasts(self, job: str, since: float) -> pd.DataFrame:
        """Read a job's forecasts of what comes after a moment of job time, see `Lake.read_served_forecasts`.

        Raises:
            LakeError: there is no table `forecasts`.
            OSError: a file cannot be read.
        """
        import pandas as pd

        rows = [
            row
            for batch in self._batches("forecasts", SERVED, [("time", "gt", since)], [job])
            for row in batch.to_pylist()
        ]
        first: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: row["wall_time"]):
            first.setdefault((row["version"], row["time"], row["step_s"]), row)
        return pd.DataFrame([*first.values()], columns=list(SERVED))

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns.

        Raises:
            LakeError: nothing was ever ingested into it.
        """
        return list(self._files_of(table).columns.names)

    def newest_rows(self, table: str, columns: Sequence[str], filters: Filters, newest: int) -> pa.Table:
        """Read the rows of greatest `wall_time`, which is among the columns, the newest first.

        Raises:
            LakeError: nothing was ever ingested into it.
            OSError: a file cannot be read.
        """
        import pyarrow as pa

        kept = self._files_of(table).columns.empty_table().select(list(columns))
        for batch in self._batches(table, columns, filters):
            kept = pa.concat_tables([kept, pa.Table.from_batches([batch])])
            if len(kept) > 2 * newest:
                kept = kept.sort_by([("wall_time", "descending")]).slice(0, newest)
        return kept.sort_by([("wall_time", "descending")]).slice(0, newest)

    def _files_of(self, table: str) -> TableFiles:
        if table not in self._files:
            raise LakeError(f"{self.root} has no table {table!r}. Run the DAG ingest_metrics, which fills it.")
        return self._files[table]

    def _batches(
        self, table: str, columns: Sequence[str], filters: Filters, jobs: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        files = self._files_of(table)
        if not files.paths:
            return iter(())
        whole = ds.dataset([str(path) for path in files.paths], schema=files.columns, format="parquet")
        kept = [getattr(operator, compare)(pc.field(column), value) for column, compare, value in filters]
        kept += [pc.field("job").isin(list(jobs))] if jobs is not None else []
        return iter(whole.to_batches(list(columns), reduce(operator.and_, kept), use_threads=False))
