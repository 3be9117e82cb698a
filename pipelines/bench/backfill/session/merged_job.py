"""A job whose results are merged into a table, so that it may begin with its newest records after an outage.

`python -m pipelines.bench.backfill.session.merged_job --run-dir DIR --job NAME --service-ms MS`, until SIGTERM: counts
per key and window of WINDOW_MS, after a service time, as a managed job; its contract says which records come first.
With `--sampled` it counts approximately, from a sample of the records of each of a few groups of keys.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from pipelines.bench.backfill.session.producer import RETRACTION
from pipelines.jobs.plans.merged import MergedJob
from pipelines.jobs.running import run_job
from tidecast.signed import sampled_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_MS, DELAY_MS = 10_000, 5_000
"""Length of the windows of production, ms, and how long records are expected to be late for them."""
GROUPS, RATE = 8, 0.5
"""Groups of keys whose records are counted approximately, and the share of these that is in the sample."""
COUNTED = sampled_count()
"""What is counted of it."""


def group_of(key: str) -> str:
    """Return the group of a key."""
    return str(crc32(key.encode()) % GROUPS)


def windowed(records: DataFrame, service_ms: int, delay_ms: int = DELAY_MS) -> DataFrame:
    """Count records per key and window of their own time, `service_ms` after another in a task (a sleep in the JVM).

    A retraction takes one record of its key and time back.
    """
    from tidecast.signed import count, signed

    served = _served(records, service_ms)
    return signed(served, "at", ["key"], mult="sign", delay_ms=delay_ms).window(WINDOW_MS).totals(n=count())


def sampled(records: DataFrame, service_ms: int, delay_ms: int = DELAY_MS) -> DataFrame:
    """Likewise per group of keys, `n`, from a sample, with the half width of its bound, `eps`."""
    from pyspark.sql import functions as F

    from tidecast.signed import signed

    served = _served(records, service_ms).withColumnRenamed("key", "member")
    grouped = served.withColumn("key", (F.crc32(F.col("member")) % GROUPS).cast("string"))
    signs = signed(grouped, "at", ["key"], mult="sign", delay_ms=delay_ms).sample(RATE, "member", "identity")
    counted = signs.window(WINDOW_MS).estimates(count=COUNTED)
    told = [F.col("count.estimate").alias("n"), F.col("count.eps").alias("eps")]
    return counted.select(*(name for name in counted.columns if name != "count"), *told)


def _served(records: DataFrame, service_ms: int) -> DataFrame:
    """Key, time in epoch ms (twice, as a sample takes values only) and sign of each record, once it was served."""
    from pyspark.sql import functions as F

    sleep = F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), F.lit(service_ms).cast("long"))
    sign = F.when(F.col("value") == F.lit(RETRACTION), -1).otherwise(1)
    at = F.unix_millis("timestamp")
    return (
        records.select(F.col("key").cast("string").alias("key"), at.alias("at"), at.alias("identity"),
                       sign.alias("sign"), sleep.alias("served"))
        .where("served IS NULL OR served IS NOT NULL").drop("served")
    )  # fmt: skip


def main() -> int:
    """Run it until SIGTERM; status as of `run_job`."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.bench.backfill.session.merged_job")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--service-ms", type=int, required=True)
    parser.add_argument("--sampled", action="store_true")
    parser.add_argument("--delay-ms", type=int, default=DELAY_MS)
    args = parser.parse_args()
    plan = partial(sampled if args.sampled else windowed, service_ms=args.service_ms, delay_ms=args.delay_ms)
    merged = MergedJob(plan, ("key",))
    return run_job(
        args.job, merged.start, ["--run-dir", str(args.run_dir)], topics=("events",), replay=merged.replayable,
        merges=True,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
