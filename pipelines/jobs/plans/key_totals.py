"""Totals per key and window, merged into a table. `python -m pipelines.jobs.plans.key_totals --run-dir DIR`.

The plan of the main job without its service. Because its results are merged, its contract may ask for the newest
records first after an outage.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.plans.launching import run_merged
from pipelines.jobs.plans.records import signed_events
from pipelines.jobs.windows import WINDOW_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOB = "key_totals"
KEYS = ("key",)


def plan(records: DataFrame, between: tuple[int, int] | None = None) -> DataFrame:
    """Count signed events (`n`) and add their numbers up (`seq_sum`), per key and window of ten minutes.

    Args:
        records: columns of Spark's Kafka source.
        between: as of `signed_events`.
    """
    from tidecast.signed import count, sum_of

    return signed_events(records, between=between).window(WINDOW_MS).totals(n=count(), seq_sum=sum_of("seq"))


def again(records: DataFrame, begin_ms: int, end_ms: int) -> DataFrame:
    """Count a range of event time again, ms: its events come late, and none of them counts as late for its replay."""
    return plan(records, (begin_ms, end_ms))


if __name__ == "__main__":
    sys.exit(run_merged(JOB, plan, KEYS, again))
