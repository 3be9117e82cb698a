"""Tables of results in small: rows of a shop's orders per window of 10 ms, and what stands in a table."""

from pathlib import Path

import pyarrow as pa

from pipelines.lake.tables import newest_version
from tidecast.merge import MergeSink, read_results

SCHEMA = "shop string, _window_start bigint, _window_end bigint, orders bigint, _deleted boolean"


def as_rows(rows):
    """Rows of `SCHEMA` of results by (shop, start of the window); None: it has none any more."""
    return [(shop, start, start + 10, orders, orders is None) for (shop, start), orders in rows.items()]


def told(spark, rows):
    """The same as a DataFrame, which needs no task to be read."""
    types = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_()}
    fields = [column.split() for column in SCHEMA.split(", ")]
    columns = zip(*as_rows(rows), strict=True) if rows else [[] for _ in fields]
    arrays = [pa.array(values, types[its]) for values, (_, its) in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.table(dict(zip((name for name, _ in fields), arrays, strict=True))))


def live(spark, table, *batches, plan="1"):
    """A table that a live query wrote in micro-batches, from 0 on; returns the sink."""
    sink = MergeSink(str(table), ["shop"], plan=plan)
    for number, rows in enumerate(batches):
        sink(told(spark, rows), number)
    return sink


def seen(spark, table):
    """What readers see, by (shop, start of the window)."""
    rows = read_results(spark, str(table)).collect()
    found = {(row.shop, row._window_start): row.orders for row in rows}
    assert len(found) == len(rows), "a key stands twice"
    return found


def version(table):
    """The newest Delta version of a table."""
    return newest_version(Path(table).parent, Path(table).name)
