"""The ledger of a micro-batch: what each approximate result may be wrong by, for a table beside the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidecast.signed.columns import END, START, SignedError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIELDS = {"eps", "pf", "n", "parameters"}


def ledger(batch: DataFrame) -> DataFrame:
    """Return a row per result and group: operator, key, window, estimate, eps, pf, n, reference, parameters.

    To be used in `foreachBatch`. A quantile's estimate and error are ranks; for a sketch that answers per value the
    estimate is n, as no value came more often. `reference` is what a relative limit is a share of.

    Args:
        batch: of `estimates`.

    Raises:
        SignedError: there is no approximate result in it.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    results = [
        field.name
        for field in batch.schema.fields
        if isinstance(field.dataType, T.StructType) and {*field.dataType.names} >= _FIELDS
    ]
    if not results:
        raise SignedError(f"no approximate result among {batch.columns}: give what estimates() made")
    window = {START, END} <= {*batch.columns}
    key = [name for name in batch.columns if name not in (*results, START, END, "_net", "_version")]
    rows = F.explode(F.array(*(_entry(name, batch) for name in results))).alias("entry")
    spans = [F.col(name) if window else F.lit(None).cast("bigint").alias(name) for name in (START, END)]
    named = F.to_json(F.struct(*key)) if key else F.lit("{}")
    return batch.select(named.alias("key"), *spans, rows).select("key", START, END, "entry.*")


def _entry(name: str, batch: DataFrame) -> Column:
    from pyspark.sql import functions as F

    its, fields = F.col(name), batch.schema[name].dataType.names  # type: ignore[attr-defined]
    n = its["n"].cast("double")
    ranked = F.element_at(its["parameters"], "q")
    if "plus" in fields:
        estimate, reference = n, n
    else:
        estimate = F.when(ranked.isNull(), its["estimate"].cast("double")).otherwise(ranked * n)
        reference = F.when(ranked.isNull(), F.abs(its["estimate"].cast("double"))).otherwise(n)
    return F.struct(
        F.lit(name).alias("operator"), estimate.alias("estimate"), its["eps"].cast("double").alias("eps"),
        its["pf"].alias("pf"), its["n"].alias("n"), reference.alias("reference"),
        its["parameters"].alias("parameters"),
    )  # fmt: skip
