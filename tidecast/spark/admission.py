"""How many records a running query may read in a batch: the read limits of its sources, set without a restart.

Spark keeps them in a private field of the query's execution, which it reads before every batch; tests/integration holds
it to what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidecast.spark.cluster import ClusterError

FIELD = "uniqueSources"
"""Field of Spark's `MicroBatchExecution`: a Scala map from source to read limit."""
FILES, DELTA = "FileStreamSource", "DeltaSource"
"""Classes of sources that read whole files."""


class AdmissionError(ClusterError):
    """The query's read limits cannot be set; the message says why, and what to do."""


class Admission:
    """Sets how many records each source of a running micro-batch query may read in a batch.

    It takes effect with the next batch; the checkpoint and the query's own options stay as they are, so that a query
    that is started again has the limit it was written with. A source's limit is divided over its partitions in
    proportion to what they hold, and rounded down.
    """

    def __init__(self, query: Any) -> None:
        """Find the field in a query that runs in this process.

        Args:
            query: what `.start()` returned.

        Raises:
            AdmissionError: no micro-batch query of this process, or a Spark that keeps its limits otherwise.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        from pyspark import SparkContext

        context = SparkContext._active_spark_context
        if not hasattr(query, "_jsq") or context is None:
            raise AdmissionError(
                f"{type(query).__name__} is no streaming query of this driver: set its limit in the process that "
                "started it"
            )
        self._execution = query._jsq.streamingQuery()
        self._limits: Any = context._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit  # type: ignore[union-attr]
        self._field = _field(self._execution, context.version)
        self._own: dict[str, Any] = {}

    def sources(self) -> list[str]:
        """Return Spark's descriptions of the sources; empty until the query has planned its first batch."""
        return [source.toString() for source, _ in self._pairs()]

    def check(self) -> bool:
        """Return whether the query has planned its first batch, and each source takes a limit in records then.

        Raises:
            AdmissionError: a source takes none.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        pairs = self._pairs()
        for source, _ in pairs:
            _refuse_unheeding(source)
            _refuse_whole_files(source)
        return bool(pairs)

    def limits(self) -> dict[str, int | None]:
        """Return the records that each source may read in a batch, by its description; None for no bound in records."""
        return {source.toString(): _rows(limit) for source, limit in self._pairs()}

    def admit(self, rows: int, rows_per_file: int | None = None) -> None:
        """Let every source read at most `rows` records in a batch from now on; 0 pauses the query without stopping it.

        Args:
            rows: records; a source of files reads as many files as hold so many.
            rows_per_file: that a file holds at most; only for a source of files.

        Raises:
            ValueError, AdmissionError: as `admit_each`.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        self._admit(dict.fromkeys(self.sources(), rows), rows_per_file)

    def admit_each(self, rows: Mapping[str, int]) -> None:
        """Let each source read at most so many records in a batch from now on.

        Args:
            rows: records by Spark's description of the source; one that is not named keeps its limit.

        Raises:
            ValueError: fewer than 0.
            AdmissionError: the query has not planned its first batch, or a source does not heed limits in records.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        self._admit(rows, None)

    def _admit(self, rows: Mapping[str, int], rows_per_file: int | None) -> None:
        if wrong := [most for most in rows.values() if most < 0]:
            raise ValueError(f"rows={wrong[0]}: at least 0 records are expected")
        heeding = ((source, source.toString()) for source, _ in self._heeding())
        self._replace(
            {source: self._limit(source, rows[name], rows_per_file) for source, name in heeding if name in rows}
        )

    def _limit(self, source: Any, rows: int, rows_per_file: int | None) -> Any:
        kind = source.getClass().getSimpleName()
        if kind == FILES and rows_per_file is not None:
            return self._limits.maxFiles(rows // rows_per_file)
        _refuse_whole_files(source)
        return self._limits.maxRows(rows)

    def release(self) -> None:
        """Give every source the limit back that it had before the first `admit`."""
        pairs = self._pairs()
        self._replace({source: self._own.get(source.toString(), limit) for source, limit in pairs})

    def _heeding(self) -> list[tuple[Any, Any]]:
        pairs = self._pairs()
        if not pairs:
            raise AdmissionError("the query has not planned its first batch: wait for its first progress")
        for source, limit in pairs:
            _refuse_unheeding(source)
            self._own.setdefault(source.toString(), limit)
        return pairs

    def _pairs(self) -> list[tuple[Any, Any]]:
        entries = self._field.get(self._execution).toSeq()
        return [(entries.apply(i)._1(), entries.apply(i)._2()) for i in range(entries.size())]

    def _replace(self, limits: dict[Any, Any]) -> None:
        known = self._field.get(self._execution)
        for source, limit in limits.items():
            known = known.updated(source, limit)
        self._field.set(self._execution, known)


def _field(execution: Any, version: str) -> Any:
    """The field's reflection, from the class that declares it; only micro-batch execution reads it."""
    field, kinds = None, _kinds(execution)
    for kind in kinds:
        field = next((one for one in kind.getDeclaredFields() if one.getName() == FIELD), field)
    if field is None or all(kind.getSimpleName() != "MicroBatchExecution" for kind in kinds):
        raise AdmissionError(
            f"{kinds[0].getName()} of Spark {version} is no micro-batch execution with a field {FIELD}: its limits "
            "cannot be set while it runs; set maxOffsetsPerTrigger and start it again"
        )
    field.setAccessible(True)
    return field


def _refuse_unheeding(source: Any) -> None:
    named = {one.getSimpleName() for kind in _kinds(source) for one in kind.getInterfaces()}
    if not named & {"SupportsAdmissionControl", "SupportsTriggerAvailableNow"}:
        raise AdmissionError(
            f"source {source.toString()} takes no limit (no SupportsAdmissionControl): read a topic instead"
        )


def _refuse_whole_files(source: Any) -> None:
    if source.getClass().getSimpleName() in (FILES, DELTA):  # they fail at a limit in records
        raise AdmissionError(
            f"source {source.toString()} reads whole files and takes no limit in records: copy the table into files of "
            "as many records each (`replay_stream` does), or read a topic instead"
        )


def _kinds(value: Any) -> list[Any]:
    """The classes of a Java object, its own first."""
    kind, found = value.getClass(), []
    while kind is not None:
        found.append(kind)
        kind = kind.getSuperclass()
    return found


def _rows(limit: Any) -> int | None:
    """The most records that a limit allows, or the strictest part of one that has several; None: it bounds none."""
    if limit.getClass().getSimpleName() == "CompositeReadLimit":  # Kafka's with minOffsetsPerTrigger
        return min((rows for one in limit.getReadLimits() if (rows := _rows(one)) is not None), default=None)
    return int(limit.maxRows()) if limit.getClass().getSimpleName() == "ReadMaxRows" else None
