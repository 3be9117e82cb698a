"""A job whose results are merged into a table, so that it may begin with its newest records after an outage.

`python -m pipelines.bench.backfill.session.merged_job --run-dir DIR --job NAME --service-ms MS`, until SIGTERM: counts
per key and window of WINDOW_MS, after a service time, as a managed job; its contract says which records come first.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.bench.backfill.session.producer import RETRACTION
from pipelines.jobs.plans.merged import MergedJob
from pipelines.jobs.running import run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_MS, DELAY_MS = 10_000, 5_000
"""Length of the windows of production, ms, and how long records are expected to be late for them."""


def windowed(records: DataFrame, service_ms: int) -> Any:
    """Count records per key and window of their own time, `service_ms` after another in a task (a sleep in the JVM).

    A retraction takes one record of its key and time back.
    """
    from pyspark.sql import functions as F

    from tidecast.signed import count, signed

    sleep = F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), F.lit(service_ms).cast("long"))
    sign = F.when(F.col("value") == F.lit(RETRACTION), -1).otherwise(1)
    served = (
        records.select(F.col("key").cast("string").alias("key"), F.unix_millis("timestamp").alias("at"),
                       sign.alias("sign"), sleep.alias("served"))
        .where("served IS NULL OR served IS NOT NULL").select("key", "at", "sign")
    )  # fmt: skip
    return signed(served, "at", ["key"], mult="sign", delay_ms=DELAY_MS).window(WINDOW_MS).totals(n=count())


def main() -> int:
    """Run it until SIGTERM; status as of `run_job`."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.bench.backfill.session.merged_job")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--service-ms", type=int, required=True)
    args = parser.parse_args()
    merged = MergedJob(partial(windowed, service_ms=args.service_ms), ("key",))
    return run_job(
        args.job, merged.start, ["--run-dir", str(args.run_dir)], topics=("events",), replay=merged.replayable,
        merges=True,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
