"""A table of results: what it is made of, how it is made, how it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidecast.merge.columns import BOOKKEEPING, COVERS, MergeError, group_of, identifier, quoted
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import END, START
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

KEYS, PLAN, EPOCH, QUERY = "tidecast.keys", "tidecast.plan", "tidecast.epoch", "tidecast.query"
_TYPES = {START: "bigint", END: "bigint", VERSION: "bigint", DELETED: "boolean", COVERS: "bigint"}


@dataclass(frozen=True)
class TableForm:
    """What is known of a table of results.

    Attributes:
        table: path or name.
        keys: columns of the key.
        values: type of each other column of the user's, as Spark writes it.
        plan: version of the plan whose live query writes it.
        epoch: of that query's versions.
        query: Spark's id of that query, which stands in its checkpoint; empty before the first.
    """

    table: str
    keys: tuple[str, ...]
    values: Mapping[str, str]
    plan: str
    epoch: int = 0
    query: str = ""

    @property
    def group(self) -> tuple[str, ...]:
        """Columns that it has one row per."""
        return group_of(self.keys)


def read_form(spark: SparkSession, table: str) -> TableForm | None:
    """Return what a table is made of, or None where there is no Delta table.

    Raises:
        MergeError: it is one, but no table of results.
    """
    from pyspark.errors import AnalysisException

    try:
        detail = spark.sql(f"DESCRIBE DETAIL {identifier(table)}").collect()[0]
        schema = spark.read.table(identifier(table)).schema
    except AnalysisException:
        return None
    if detail["format"] != "delta":
        return None
    types = {field.name: field.dataType.simpleString() for field in schema}
    properties: Mapping[str, str] = detail["properties"] or {}
    wrong = sorted(name for name, its in _TYPES.items() if types.get(name) != its)
    if wrong or KEYS not in properties:
        lack = f"it lacks {', '.join(f'{name} {_TYPES[name]}' for name in wrong)}" if wrong else f"it has no {KEYS}"
        raise MergeError(
            f"{table} is a sink that does not merge ({lack}), so no two queries' results can meet in it: write it by"
            " MergeSink, which makes such a table"
        )
    keys = tuple(json.loads(properties[KEYS]))
    values = {name: its for name, its in types.items() if name not in (*group_of(keys), *BOOKKEEPING)}
    return TableForm(
        table, keys, values, properties.get(PLAN, ""), int(properties.get(EPOCH, 0)), properties.get(QUERY, "")
    )


def length_of_windows(
    spark: SparkSession, table: str, error: type[ValueError], why: str, among: str = "true"
) -> int | None:  # fmt: skip
    """Return the length of a table's windows, ms; None where it has none.

    Args:
        spark: a session with Delta.
        table: path or name of a table of results.
        error: of the caller.
        why: the caller takes windows of one length only, and what to do instead.
        among: condition on the rows that count, in SQL; without it all do, those that were deleted, too.

    Raises:
        ValueError: as given: they are of several lengths, as sessions are.
    """
    from pyspark.sql import functions as F

    rows = spark.read.table(identifier(table)).where(among).select((F.col(END) - F.col(START)).alias("ms"))
    lengths = sorted(row["ms"] for row in rows.distinct().limit(2).collect())
    if len(lengths) > 1:
        raise error(f"{table} has windows of {lengths[0]} and of {lengths[1]} ms: {why}")
    return int(lengths[0]) if lengths else None


def create_table(
    spark: SparkSession, table: str, rows: StructType, keys: Sequence[str], plan: str, epoch: int, query: str
) -> TableForm:
    """Make an empty table of results, unless another writer has made it by now.

    Args:
        spark: a session with Delta.
        table: path or name.
        rows: schema of `results(...)`.
        keys: columns of the key.
        plan: version of the plan.
        epoch: of the versions of its live query.
        query: Spark's id of that one; empty: unknown.

    Raises:
        MergeError: at its place is something else.
    """
    from pyspark.errors import AnalysisException

    types = {field.name: field.dataType.simpleString() for field in rows} | _TYPES
    columns = ", ".join(f"{quoted(name)} {its}" for name, its in types.items())
    made = {KEYS: json.dumps([*keys]), PLAN: plan, EPOCH: str(epoch), QUERY: query}
    why = "something else lies there"
    try:
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {identifier(table)} ({columns}) USING delta TBLPROPERTIES ({_pairs(made)})"
        )
    except AnalysisException as error:
        why = str(error)[:200]
    form = read_form(spark, table)
    if form is None:
        raise MergeError(
            f"{table} is no Delta table, and none can be made there ({why}): give another place, or"
            " remove the folder if all it holds is what an interrupted creation left"
        )
    return form


def set_properties(spark: SparkSession, table: str, **properties: Any) -> None:
    """Set the version of the plan, the epoch or the query that stand in a table's properties: one commit."""
    named = {f"tidecast.{name}": str(value) for name, value in properties.items()}
    spark.sql(f"ALTER TABLE {identifier(table)} SET TBLPROPERTIES ({_pairs(named)})")


def check_values(form: TableForm, rows: StructType) -> None:
    """Refuse rows that have other columns than their table.

    Raises:
        MergeError: with the columns.
    """
    theirs = {field.name: field.dataType.simpleString() for field in rows}
    found = {name: its for name, its in theirs.items() if name not in (*form.group, *BOOKKEEPING)}
    if found != dict(form.values):
        raise MergeError(
            f"results have the values {found}, {form.table} has {dict(form.values)}: select and cast them to the"
            " table's, or write another table"
        )


def read_results(spark: SparkSession, table: str) -> DataFrame:
    """Return the results that stand in a table: key, window and values, without what was deleted.

    Raises:
        MergeError: it is no table of results.
    """
    from pyspark.sql import functions as F

    if read_form(spark, table) is None:
        raise MergeError(f"{table} is no Delta table: give the path or the name of one that MergeSink writes")
    return spark.read.table(identifier(table)).where(~F.col(DELETED)).drop(*BOOKKEEPING)


def _pairs(properties: Mapping[str, str]) -> str:
    def text(value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    return ", ".join(f"{text(name)} = {text(value)}" for name, value in properties.items())
