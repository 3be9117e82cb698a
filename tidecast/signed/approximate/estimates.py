"""Approximate results per group, each with its bound: Spark's own sketches, and sums of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidecast.signed.aggregate import VERSION
from tidecast.signed.approximate.approximations import SAMPLED, SKETCHES, Approximation, check_columns
from tidecast.signed.approximate.bounds import (
    around,
    count_min_bound,
    difference_error,
    hyperloglog_error,
    kll_rank_error,
    sampled_mean_error,
    sampled_sum_error,
)
from tidecast.signed.columns import CLOCK, MULT, NET, SignedError, check_user_columns
from tidecast.signed.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_SEED = 7
_LOW_BITS = 2**31 - 1
"""Spark's count-min sketch multiplies a key with a number below this one: hashes of so many bits cannot overflow."""


def estimates(frame: Frame, approximations: Mapping[str, Approximation]) -> DataFrame:
    """Return each group's approximate results as they stand, for a sink that merges by key.

    A row has the key, the window, `_net`, `_version` and per result a struct: `estimate`, `low`, `high`, `eps` (half
    width; of a quantile in ranks), `pf`, `n` (records that it was made from), `parameters`. A count per value has its
    sketches instead of the first three. In a stream it is the last stage, in output mode `update`, or `append` in
    windows; behind results of a stateful operator in `append` only.

    Args:
        frame: what comes; a sample, if the results are to be of one.
        approximations: results by name.

    Raises:
        SignedError: retractions meet a sketch that cannot take a value out, or names or types do not fit.
    """
    from pyspark.sql import functions as F

    _check(frame, approximations)
    schema = frame.df.schema
    raw: list[Column] = []
    made: list[Column] = []
    for name, one in approximations.items():
        its = check_columns(one, schema)
        parts = _parts(one, its, frame)
        raw += [column.alias(f"{name} {part}") for part, column in parts.items()]
        of = {part: F.col(f"`{name} {part}`") for part in parts}
        made.append(F.struct(*(c.alias(n) for n, c in _result(one, of, its, frame).items())).alias(name))
    clock = [CLOCK] if frame.streaming and frame.windowed else []
    sums = [F.sum(F.col(MULT).cast("bigint")).alias(NET), F.count(F.lit(1)).alias(VERSION)]
    grouped = frame.df.groupBy(*clock, *frame.group).agg(*raw, *sums)
    return grouped.select(*frame.group, *made, NET, VERSION)


def group_salt(*group: str) -> Column:
    """Return what tells a group from others in the hashes of its values.

    Without it a value that a sketch is unlucky with would be so in every window: a bound that fails in one of 200
    windows is not one that fails in all windows for one of 200 values.
    """
    from pyspark.sql import functions as F

    return F.xxhash64(*group)


def item_hash(salt: Column, *columns: Column | str) -> Column:
    """Return what a count-min sketch counts for a row of columns: 31 bits of Spark's xxhash64."""
    from pyspark.sql import functions as F

    return F.xxhash64(salt, *columns).bitwiseAND(F.lit(_LOW_BITS))


def _parts(one: Approximation, its: DataType | None, frame: Frame) -> dict[str, Column]:
    """The aggregates that a result is made of."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    there = F.lit(True)
    for column in one.columns:
        there = there & F.col(column).isNotNull()
    if one.kind == "quantile" and isinstance(its, (T.FloatType, T.DoubleType)):
        there = there & ~F.isnan(one.columns[0])  # which the sketch leaves out
    sign, salt = F.col(MULT).cast("bigint"), group_salt(*frame.group)
    parts = {"n": F.coalesce(F.sum(F.when(there, sign)), F.lit(0).cast("bigint"))}
    if one.kind == "distinct":
        value = F.when(there, F.xxhash64(salt, *one.columns))
        return parts | {"sketch": F.hll_sketch_agg(value, F.lit(int(one["precision"])))}
    if one.kind == "quantile":
        value = F.col(one.columns[0])
        k = F.lit(int(one["k"]))
        if _is_integral(its):
            return parts | {"sketch": F.kll_sketch_agg_bigint(value.cast("bigint"), k)}
        return parts | {"sketch": F.kll_sketch_agg_double(value.cast("double"), k)}
    if one.kind == "remaining":
        log_k = F.lit(int(one["log_k"]))
        value = F.xxhash64(salt, *one.columns)
        gone = F.theta_sketch_agg(F.when(there & (sign < 0), value), log_k)
        return parts | {"plus": F.theta_sketch_agg(F.when(there & (sign > 0), value), log_k), "minus": gone}
    if one.kind == "count":
        width, depth = one["width"], one["depth"]
        # Spark's own sizes are ⌈2/eps⌉ and ⌈−log2(1 − confidence)⌉; halves keep them from rounding to the next one.
        sizes = F.lit(2 / (width - 0.5)), F.lit(1 - 2 ** (0.5 - depth)), F.lit(_SEED)
        item = item_hash(salt, *one.columns)
        plus = F.count_min_sketch(F.when(there & (sign > 0), item), *sizes)
        if not frame.retracting:
            return parts | {"plus": plus}
        return parts | {"plus": plus, "minus": F.count_min_sketch(F.when(there & (sign < 0), item), *sizes)}
    if one.kind == "sampled count":
        return parts
    x = F.col(one.columns[0]).cast("double")
    low, high = (-one["most"], one["most"]) if one.kind == "sampled sum" else (one["low"], one["high"])
    beyond = F.raise_error(F.lit(f"a value of {one.columns[0]} that is not from {low} to {high}, as its bound says"))
    x = F.when(x.between(low, high) | x.isNull(), x).otherwise(beyond)
    return parts | {"sum": F.sum(x * sign), "squares": F.sum(x * x * sign)}


def _result(one: Approximation, of: Mapping[str, Column], its: DataType | None, frame: Frame) -> dict[str, Column]:
    """The columns of a result's struct, from its aggregates."""
    from pyspark.sql import functions as F

    n, pf, rate = of["n"], one.pf, frame.rate
    parameters = [*one.parameters, *([("rate", rate)] if one.kind in SAMPLED else [])]
    if one.kind == "count":
        share, pf = count_min_bound(int(one["width"]), int(one["depth"]))
        sketches = {"plus": of["plus"], "minus": of.get("minus", F.lit(None).cast("binary"))}
        sketches["salt"] = group_salt(*frame.group)
        return sketches | _told(n * share, pf, n, parameters)
    if one.kind == "distinct":
        error = hyperloglog_error(int(one["precision"]), pf)
        estimate = F.hll_sketch_estimate(of["sketch"]).cast("double")
        bounds = {"estimate": estimate, "low": estimate / (1 + error), "high": estimate / (1 - error)}
        return bounds | _told(around(estimate, error), pf, n, parameters)
    if one.kind == "quantile":
        return _quantile(one, of, its) | _told(n * kll_rank_error(int(one["k"]), pf), pf, n, parameters)
    if one.kind == "remaining":
        k = int(2 ** one["log_k"])
        whole = F.theta_sketch_estimate(of["plus"]).cast("double")
        estimate = F.theta_sketch_estimate(F.theta_difference(of["plus"], of["minus"])).cast("double")
        eps = F.when(whole <= k, F.lit(0.0)).otherwise(difference_error(estimate, whole, k, pf, F.sqrt))
    elif one.kind == "sampled count":
        estimate = n / F.lit(rate)
        eps = sampled_sum_error(estimate, rate, 1.0, pf, F.sqrt)
    elif one.kind == "sampled sum":
        estimate = F.coalesce(of["sum"], F.lit(0.0)) / F.lit(rate)
        squares = F.greatest(F.coalesce(of["squares"], F.lit(0.0)), F.lit(0.0)) / F.lit(rate)
        eps = sampled_sum_error(squares, rate, one["most"], pf, F.sqrt)
    else:
        estimate = F.when(n > 0, of["sum"] / n)
        if rate < 1:
            eps = F.when(n > 0, sampled_mean_error(n, one["low"], one["high"], pf, F.sqrt))
        else:
            eps = F.when(n > 0, F.lit(0.0))
    return {"estimate": estimate, "low": estimate - eps, "high": estimate + eps} | _told(eps, pf, n, parameters)


def _quantile(one: Approximation, of: Mapping[str, Column], its: DataType | None) -> dict[str, Column]:
    """The value, and those whose ranks are as far apart from it as the sketch may be wrong."""
    from pyspark.sql import functions as F

    ask = F.kll_sketch_get_quantile_bigint if _is_integral(its) else F.kll_sketch_get_quantile_double
    error, q = kll_rank_error(int(one["k"]), one.pf), one["q"]
    ranks = F.array(*(F.lit(rank) for rank in (q, max(q - error, 0.0), min(q + error, 1.0))))
    found = F.when(of["n"] > 0, ask(of["sketch"], ranks))  # of no values there is none, and to ask is an error
    return {"estimate": found[0], "low": found[1], "high": found[2]}


def _told(eps: Column, pf: float, n: Column, parameters: list[tuple[str, float]]) -> dict[str, Column]:
    from pyspark.sql import functions as F

    pairs = [F.lit(part) for name, value in parameters for part in (name, float(value))]
    told = F.create_map(*pairs) if pairs else F.create_map().cast("map<string,double>")
    return {"eps": eps, "pf": F.lit(pf), "n": n, "parameters": told}


def _is_integral(its: DataType | None) -> bool:
    from pyspark.sql import types as T

    return isinstance(its, T.IntegralType)


def _check(frame: Frame, approximations: Mapping[str, Approximation]) -> None:
    if not frame.group:
        raise SignedError("records under no key and in no window: rekey or window them before")
    if not approximations:
        raise SignedError("estimates(): name a result or more")
    check_user_columns([*approximations])
    if taken := sorted({*approximations} & {*frame.group}):
        raise SignedError(f"results {taken} are named as columns of the key: give them other names")
    for name, one in approximations.items():
        if frame.retracting and one.kind in SKETCHES:
            raise SignedError(
                f"{name}: a {SKETCHES[one.kind]} sketch cannot take a value out, and these records may retract. Count"
                " with distinct() or approx_distinct(..., once=True), take a sample, or final results without lateness"
            )
        if (one.kind in SAMPLED) != (frame.rate < 1):
            remedy = "take sample(rate, ...) before" if frame.rate == 1 else "take the sketch of all records"
            raise SignedError(f"{name}: {one.kind} of {'all records' if frame.rate == 1 else 'a sample'}; {remedy}")
