"""Tables of results in small: rows of a shop's orders per window of 10 ms, and what stands in a table."""

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from pipelines.lake.tables import newest_version
from tidecast.merge import MergeSink

SCHEMA = "shop string, _window_start bigint, _window_end bigint, orders bigint, _deleted boolean"
HOURLY = {("a", 0): 5, ("b", 0): 7, ("a", 10): 1, ("a", 20): 50}
"""What stands in the table of the fixture `hourly`."""


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


def live(spark, table, *batches):
    """A table that a live query wrote in micro-batches, from 0 on; returns the sink."""
    sink = MergeSink(str(table), ["shop"])
    for number, rows in enumerate(batches):
        sink(told(spark, rows), number)
    return sink


def of_others(folder):
    """A Delta table with the columns of `SCHEMA` that no sink has made, `plain`, and a folder of Parquet, `parquet`."""
    fields = [
        {"name": name, "type": {"bigint": "long"}.get(its, its), "nullable": True, "metadata": {}}
        for name, its in (column.split() for column in SCHEMA.split(", "))
    ]
    table = {
        "id": "plain", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 0,
    }  # fmt: skip
    actions = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": table})
    (folder / "plain" / "_delta_log").mkdir(parents=True)
    (folder / "plain" / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    (folder / "parquet").mkdir()
    pyarrow.parquet.write_table(pa.table({"shop": ["a"]}), folder / "parquet" / "0.parquet")


def standing(table):
    """The rows that `tidecast.merge.read_results` has of a table, read from its log and its files without Spark."""
    files = {}
    for log in sorted((Path(table) / "_delta_log").glob("*.json")):
        for action in map(json.loads, log.read_text().splitlines()):
            if (added := action.get("add")) is not None:
                assert "deletionVector" not in added
                files[added["path"]] = Path(table) / unquote(added["path"])
            elif (removed := action.get("remove")) is not None:
                files.pop(removed["path"], None)
    rows = [row for file in files.values() for row in pyarrow.parquet.read_table(file).to_pylist()]
    return [row for row in rows if not row["_deleted"]]


def seen(table):
    """What readers see, by (shop, start of the window)."""
    rows = standing(table)
    found = {(row["shop"], row["_window_start"]): row["orders"] for row in rows}
    assert len(found) == len(rows), "a key stands twice"
    return found


def version(table):
    """The newest Delta version of a table."""
    return newest_version(Path(table).parent, Path(table).name)
