"""The gate in front of the lake: rules as Great Expectations on a Spark frame; sole importer of great_expectations.

The rows that are kept back are those that the expectations' own results name.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read when the package is imported

import great_expectations as gx

from configs.errors import FinalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

gxe: Any = gx.expectations  # its classes are not exported for type checkers


class QualityError(FinalError):
    """The gate itself went wrong; nothing may be committed."""


@dataclass(frozen=True)
class QualityRule:
    """The column's number lies in [least, most], null passes, NaN does not; without bounds: the column is null."""

    column: str
    bounds: tuple[float, float] | None = None
    severity: Literal["critical", "warning"] = "critical"

    def expectation(self) -> Any:
        """As Great Expectations says it; both bounds, because NaN is above every lower one for Spark."""
        if self.bounds is None:
            return gxe.ExpectColumnValuesToBeNull(column=self.column)
        least, most = self.bounds
        return gxe.ExpectColumnValuesToBeBetween(column=self.column, min_value=least, max_value=most)

    def reason(self, value: Any) -> str:
        """What is wrong with the value: the text that is not null, or the bounds that it is out of."""
        if self.bounds is None:
            return str(value)
        return f"{self.column}={value}: at least {self.bounds[0]:.12g} and at most {self.bounds[1]:.12g} is expected"


@dataclass(frozen=True)
class QualityVerdict:
    """What the gate decided: `good` rows as they came, `bad` rows with `reasons`; every row is in one of the two.

    `warnings` counts the rows that broke a rule of severity warning, by the rule's column; they are good rows.
    """

    good: DataFrame
    bad: DataFrame
    read: int
    kept: int
    refused: int
    warnings: dict[str, int]


def gate(rows: DataFrame, rules: Sequence[QualityRule], identity: tuple[str, ...]) -> QualityVerdict:
    """Split rows by rules.

    Args:
        rows: read as often as rules are broken, so keep them at hand; not by `cache`, whose column statistics leave out
            NaN, so that Spark's filters pass over it.
        rules: of severity critical (a row that breaks one is bad) and warning.
        identity: columns that together name a row.

    Raises:
        QualityError: an expectation failed to run, or a row would be lost or doubled.
    """
    from pyspark.sql import functions as F

    read = rows.count()
    broken = [rules[i] for i, result in enumerate(_validate(rows, rules, "BOOLEAN_ONLY")) if not result.success]
    # Naming the rows takes a query per expectation, so only those that failed are asked again.
    found = {"result_format": "COMPLETE", "unexpected_index_column_names": list(identity)}
    broke: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    warnings: dict[str, int] = {}
    for rule, result in zip(broken, _validate(rows, broken, found), strict=True):
        named = result.result["unexpected_index_list"]
        if len(named) != result.result["unexpected_count"]:
            raise QualityError(f"{rule}: {result.result['unexpected_count']} rows break it, but {len(named)} are named")
        if rule.severity == "warning":
            warnings[rule.column] = len(named)
            continue
        for row in named:
            broke[tuple(row[name] for name in identity)].append(rule.reason(row[rule.column]))
    listed = [(*key, reasons) for key, reasons in broke.items()]
    columns = [f"{name} {rows.schema[name].dataType.simpleString()}" for name in identity]
    schema = ", ".join([*columns, "reasons array<string>"])
    bad_ids = F.broadcast(rows.sparkSession.createDataFrame(listed, schema))
    good = rows.join(bad_ids, on=list(identity), how="left_anti") if listed else rows
    bad = rows.join(bad_ids, on=list(identity), how="inner")
    verdict = QualityVerdict(good, bad, read, good.count() if listed else read, bad.count() if listed else 0, warnings)
    if verdict.kept + verdict.refused != read or verdict.refused != len(listed):
        raise QualityError(
            f"{read} rows read, {verdict.kept} kept, {verdict.refused} refused of {len(listed)} named: rows were lost"
        )
    return verdict


def _validate(rows: DataFrame, rules: Sequence[QualityRule], result_format: Any) -> list[Any]:
    """The results of the rules' expectations, in the rules' order."""
    if not rules:
        return []
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_or_update_spark("spark", persist=False).add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": rows})
    expectations = [rule.expectation() for rule in rules]
    for i, expectation in enumerate(expectations):
        expectation.severity, expectation.meta = rules[i].severity, {"rule": i}
    suite = gx.ExpectationSuite(name="gate", expectations=expectations)
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
