"""The gate in front of the lake: rules as Great Expectations on a Spark frame; sole importer of great_expectations.

The rows that are kept back are those that the expectations' own results name.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from configs.errors import FinalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTED = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""Numbers of rows, and none of the rows; it costs the query that `BOOLEAN_ONLY` costs."""


class QualityError(FinalError):
    """The gate itself went wrong; nothing may be committed."""


@dataclass(frozen=True)
class QualityRule:
    """A rule for one column.

    Attributes:
        column: name.
        bounds: (least, most) of its number, both included; null passes, NaN does not. None: the column must be null.
        severity: a row that breaks a critical rule is refused; one that breaks a warning is counted only.
    """

    column: str
    bounds: tuple[float, float] | None = None
    severity: Literal["critical", "warning"] = "critical"

    def expectation(self) -> Any:
        """Return the rule as Great Expectations has it: null, or within both bounds, which NaN never is in Spark."""
        expectations = great_expectations().expectations
        if self.bounds is None:
            return expectations.ExpectColumnValuesToBeNull(column=self.column)
        least, most = self.bounds
        return expectations.ExpectColumnValuesToBeBetween(column=self.column, min_value=least, max_value=most)

    def reason(self, value: Any) -> str:
        """Say what is wrong with a value: itself where it should be null, else the value and the bounds."""
        if self.bounds is None:
            return str(value)
        return f"{self.column}={value}: at least {self.bounds[0]:.12g} and at most {self.bounds[1]:.12g} is expected"


@dataclass(frozen=True)
class QualityVerdict:
    """The rows that passed and those that did not; every row is in one of the two.

    Attributes:
        good: rows as they came, those with warnings among them.
        bad: rows that broke a critical rule, with `reasons` (a list of texts).
        read, kept, refused: number of rows in all, in `good` and in `bad`.
        warnings: number of rows that broke a rule of severity warning, by the rule's column; only broken rules.
    """

    good: DataFrame
    bad: DataFrame
    read: int
    kept: int
    refused: int
    warnings: dict[str, int]


def apply_rules(rows: DataFrame, rules: Sequence[QualityRule], identity: tuple[str, ...]) -> QualityVerdict:
    """Split rows into those that keep all critical rules and those that break one; runs several Spark jobs.

    Args:
        rows: read once for every broken rule, so checkpoint them before; not by `cache`, whose column statistics leave
            out NaN, so that Spark's filters pass over it.
        rules: one or more.
        identity: columns that together name a row.

    Returns:
        `good` rows and `bad` ones with the column `reasons` (texts), both lazy; numbers of rows `read`, `kept`,
        `refused`; and `warnings`, rows by column of a broken rule of severity warning, which refuses none.

    Raises:
        QualityError: an expectation failed to run, e.g. as its column is missing, or a row would be lost or doubled.
        KeyError: a column of `identity` is missing.
        Exception: as pyspark raises it, where the rows cannot be computed.
    """
    from pyspark.sql import functions as F

    # Of a wide frame every one of its many looks takes longer to plan.
    looked_at = {*identity, *(rule.column for rule in rules)}
    batch = _batch_of(rows.select([name for name in rows.columns if name in looked_at]))
    counted = _validate(batch, rules, _COUNTED)
    read = int(counted[0].result["element_count"])
    judged = zip(rules, counted, strict=True)
    broken_rules = [(rule, int(result.result["unexpected_count"])) for rule, result in judged if not result.success]
    warnings = {rule.column: count for rule, count in broken_rules if rule.severity == "warning"}
    # Naming the rows takes a query per expectation and brings them here, so only those that are kept back are named.
    refusing = [rule for rule, _ in broken_rules if rule.severity == "critical"]
    name_rows = {
        "result_format": "COMPLETE", "unexpected_index_column_names": list(identity),
        "return_unexpected_index_query": False,
    }  # fmt: skip
    reasons_by_row: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for rule, result in zip(refusing, _validate(batch, refusing, name_rows), strict=True):
        named = result.result["unexpected_index_list"]
        if len(named) != result.result["unexpected_count"]:
            raise QualityError(f"{rule}: {result.result['unexpected_count']} rows break it, but {len(named)} are named")
        for row in named:
            reasons_by_row[tuple(row[name] for name in identity)].append(rule.reason(row[rule.column]))
    listed = [(*key, reasons) for key, reasons in reasons_by_row.items()]
    columns = [f"{name} {rows.schema[name].dataType.simpleString()}" for name in identity]
    schema = ", ".join([*columns, "reasons array<string>"])
    bad_ids = F.broadcast(rows.sparkSession.createDataFrame(listed, schema))
    marked = rows.join(bad_ids, on=list(identity), how="left")
    good, total, refused = rows, read, 0
    if listed:
        good = marked.where("reasons IS NULL").drop("reasons")
        total, refused = marked.select(F.count("*"), F.count("reasons")).collect()[0]
    verdict = QualityVerdict(good, marked.where("reasons IS NOT NULL"), read, total - refused, refused, warnings)
    if total != read or refused != len(listed):
        raise QualityError(
            f"{read} rows read, {verdict.kept} kept, {verdict.refused} refused of {len(listed)} named: rows were lost"
        )
    return verdict


def great_expectations() -> Any:
    """Return the library, which takes seconds to import: whoever states rules and applies none does without."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read when the package is imported
    import great_expectations as library

    return library


def _batch_of(rows: DataFrame) -> Any:
    """The rows as Great Expectations judges them, in a context of their own."""
    context = great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_or_update_spark("spark", persist=False).add_dataframe_asset("rows")
    return asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": rows})


def _validate(batch: Any, rules: Sequence[QualityRule], result_format: Any) -> list[Any]:
    """The results of the rules' expectations, in the rules' order."""
    if not rules:
        return []
    expectations = [rule.expectation() for rule in rules]
    for i, expectation in enumerate(expectations):
        expectation.severity, expectation.meta = rules[i].severity, {"rule": i}
    suite = great_expectations().ExpectationSuite(name="gate", expectations=expectations)
    results = {r.expectation_config.meta["rule"]: r for r in batch.validate(suite, result_format=result_format).results}
    for i, result in results.items():
        if (message := _raised(result.exception_info)) is not None:
            raise QualityError(f"{rules[i]}: {message}")
    if len(results) != len(rules):
        raise QualityError(f"{len(rules)} rules, but {len(results)} results")
    return [results[i] for i in range(len(rules))]


def _raised(info: Any) -> str | None:
    """What went wrong inside an expectation: reported once, or once for each of its metrics."""
    parts = [info] if "raised_exception" in info else info.values()
    return next((str(one["exception_message"]) for one in parts if one["raised_exception"]), None)
