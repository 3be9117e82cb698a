"""How often a value came, asked of a group's count-min sketch, by Spark's own expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidecast.signed.approximate.estimates import item_hash

if TYPE_CHECKING:
    from pyspark.sql import Column

# Of Spark's CountMinSketch.writeTo, in bytes: version 4, total 8, depth 4, width 4, then a long per row's hash and the
# counters row by row, longs too, all big-endian.
_HEAD, _LONG = 20, 8


def frequency(result: Column | str, *items: Column | str) -> Column:
    """Return the estimate of how often a value came: a struct of `estimate`, `low`, `high`, `eps`, `pf`, `n`.

    The estimate is never too low, so that it is the upper bound as well. A value of another type is another one: of a
    bigint column a plain 5 is an int, which came never.

    Args:
        result: of `approx_count`, a column of `estimates`.
        items: columns of the value in the order and of the types that `approx_count` was given; cast a literal to them.
    """
    from pyspark.sql import functions as F

    its = F.col(result) if isinstance(result, str) else result
    x = item_hash(its["salt"], *items)
    width, depth = (its["parameters"][name].cast("int") for name in ("width", "depth"))
    counts = F.transform(
        F.sequence(F.lit(0), depth - 1),
        lambda row: (
            _counter(its["plus"], row, x, width, depth)
            - F.coalesce(_counter(its["minus"], row, x, width, depth), F.lit(0).cast("bigint"))
        ),
    )
    estimate = F.array_min(counts)
    low = F.greatest(estimate - its["eps"], F.lit(0.0))
    return F.struct(
        estimate.alias("estimate"), low.alias("low"), estimate.alias("high"), its["eps"].alias("eps"),
        its["pf"].alias("pf"), its["n"].alias("n"),
    )  # fmt: skip


def _counter(sketch: Column, row: Column, x: Column, width: Column, depth: Column) -> Column:
    """A row's counter of an item: a·x folded to 31 bits, modulo the width."""
    product = _long(sketch, row) * x
    folded = (product + _high(product)).bitwiseAND(2**31 - 1)
    return _long(sketch, depth + row * width + (folded % width).cast("int"))


def _long(sketch: Column, place: Column) -> Column:
    from pyspark.sql import functions as F

    begin = place * _LONG + (_HEAD + 1)
    return F.conv(F.hex(F.substring(sketch, begin, F.lit(_LONG))), 16, 10).cast("bigint")


def _high(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.shiftright(value, 32)
