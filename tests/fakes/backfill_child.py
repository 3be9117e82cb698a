"""A driver that runs a backfill to its end, to be killed before: `python -m tests.fakes.backfill_child TABLE ROWS`."""

import sys
from pathlib import Path

from pipelines.spark.session import local_session
from tests.fakes.result_tables import SCHEMA
from tidecast.backfill.publish import publish
from tidecast.backfill.running import prepare
from tidecast.backfill.shadow import write

if __name__ == "__main__":
    spark = local_session("killed-backfill", delta=True)
    table, windows = Path(sys.argv[1]), int(sys.argv[2])
    with prepare(spark, table, "fix", 0, 10 * windows, "1") as backfill:
        if not backfill.spec.last.written:
            rows = spark.range(windows).selectExpr(
                "'a' AS shop", "id * 10 AS _window_start", "id * 10 + 10 AS _window_end", "id + 1 AS orders",
                "false AS _deleted",
            )  # fmt: skip
            assert rows.schema.simpleString().count("bigint") == SCHEMA.count("bigint")
            print("writes", flush=True)
            write(backfill, rows)
        print("publishes", flush=True)
        publish(backfill)
    print("published", flush=True)
