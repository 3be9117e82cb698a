"""The pool of Spark's fair scheduler in which replays run."""

from __future__ import annotations

POOL = "replay"
"""Pool of Spark's fair scheduler in which replays run; in an allocation file live records' pool should have the cores
first (`minShare`). Without `spark.scheduler.mode=FAIR` pools have no effect."""


def enter_pool() -> None:
    """Let the jobs of this thread, and of queries that it starts, run in the replays' pool."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        context.setLocalProperty("spark.scheduler.pool", POOL)
