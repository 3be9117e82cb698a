"""What a live query writes its results by: idempotent, and safe beside a backfill of the same windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidecast.merge.columns import BATCHES, NOTHING_TOLD, MergeError, identifier, version_of
from tidecast.merge.results import results
from tidecast.merge.table import TableForm, check_values, create_table, read_form, set_properties
from tidecast.merge.upsert import retried, upsert
from tidecast.signed.aggregate import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY = "sql.streaming.queryId"


@dataclass
class MergeSink:
    """Merges each micro-batch into a Delta table, which the first one makes: for `foreachBatch`.

    One row per key and window stands in the table, with `_version` (of the micro-batch that told it) and `_deleted`
    (it has no result any more; the row stays, so that what is older does not come back). A repeated micro-batch changes
    nothing, an older one replaces nothing. Every method needs a session with Delta.

    Attributes:
        table: path or name of a Delta table.
        keys: columns of the key, without the window's.
        plan: version of the plan, to be raised when it computes other results; stands in the table's properties.
        epoch: one more with every new checkpoint, because micro-batches count from 0 again then.
        attempts: times that a merge is tried while other writers come between.
        whole_from: event time, ms, from which on windows begin of which this query sees all records; of others, what it
            tells is noted and not shown, until a replay has corrected them (`tidecast.recovery`). None: all windows.
    """

    table: str
    keys: Sequence[str] = ()
    plan: str = "1"
    epoch: int = 0
    attempts: int = 20
    whole_from: int | None = None
    _form: TableForm | None = field(default=None, init=False, repr=False)
    _newest: int | None = field(default=None, init=False, repr=False)
    _query: str = field(default="", init=False, repr=False)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Merge a micro-batch.

        Args:
            batch: a change log of an aggregate, signed totals or plain results, in windows.
            batch_id: as Spark counts them.

        Raises:
            MergeError: the results or the table cannot be merged, or the table is another query's, or has results of
                later micro-batches than the first one of this query, whose checkpoint is an older copy then.
            Exception: as pyspark raises it; nothing of the micro-batch is committed then.
        """
        version = version_of(self.epoch, batch_id)
        rows = results(batch, self.keys)
        query = rows.sparkSession.sparkContext.getLocalProperty(_QUERY) or ""
        if query != self._query:  # a driver may start the next query with the same sink
            self._newest = None
        older = self._newest is not None and version < self._newest  # or this one again, from a checkpoint of before
        if self._form is None or query != self._query or older:
            self._form, self._query = retried(lambda: self._begin(rows, batch_id), self.attempts), query
            if older and query:  # the table was put back, too: nothing later was found in it
                self._newest = None
        check_values(self._form, rows.schema)
        # Only what was told before this sink was made, or failed in it, can be there already.
        repeated = self._newest is None or version <= self._newest
        self._newest = version if self._newest is None else max(version, self._newest)
        upsert(self._form, rows, version, self.attempts, self.whole_from, repeated)

    def _begin(self, rows: DataFrame, batch_id: int) -> TableForm:
        """The table, made if need be, with this query as its live one."""
        spark = rows.sparkSession
        query = spark.sparkContext.getLocalProperty(_QUERY) or ""
        form = read_form(spark, self.table)
        if form is None:
            form = create_table(spark, self.table, rows.schema, self.keys, self.plan, self.epoch, query)
            self._newest = NOTHING_TOLD
        if form.keys != (*self.keys,):
            raise MergeError(f"keys {[*self.keys]} of the sink, {[*form.keys]} of {self.table}: give the table's")
        another = bool(query and form.query and query != form.query)
        if self.epoch < form.epoch or (another and self.epoch == form.epoch):
            raise MergeError(
                f"{self.table} was written by query {form.query or 'unknown'} in epoch {form.epoch}, this is query"
                f" {query or 'unknown'} in epoch {self.epoch}, whose micro-batches would count as older: go on from"
                f" that query's checkpoint, or give epoch={form.epoch + 1} with a new one"
            )
        if query and (form.query, form.epoch) == (query, self.epoch):
            self._refuse_older(spark, batch_id)
        wanted = replace(form, plan=self.plan, epoch=self.epoch, query=query or form.query)
        if wanted != form:
            set_properties(spark, self.table, plan=wanted.plan, epoch=wanted.epoch, query=wanted.query)
        return wanted

    def _refuse_older(self, spark: SparkSession, batch_id: int) -> None:
        """Refuse a checkpoint of before the table: its first micro-batch can repeat the newest one, and no older."""
        from pyspark.sql import functions as F

        told = F.col(VERSION)
        later = (told > version_of(self.epoch, batch_id)) & (told < (self.epoch + 1) * BATCHES)
        if not spark.read.table(identifier(self.table)).where(later).isEmpty():
            raise MergeError(
                f"{self.table} has results of later micro-batches than {batch_id}: the query's checkpoint is an older"
                " copy, whose results would count as older. Bring back the table as it was then, or begin a new"
                f" checkpoint and give epoch={self.epoch + 1}"
            )
