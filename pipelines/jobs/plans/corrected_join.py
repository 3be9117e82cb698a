"""Events beside their replies, by key. `python -m pipelines.jobs.plans.corrected_join --run-dir DIR [--no-agent]`.

Two topics of signed events, `events` and `replies`: whatever is taken back on either takes its pairs back, and the
windows that counted them are told anew.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.plans.launching import run_plan

if TYPE_CHECKING:
    from tidecast.signed import SignedFrame

JOB = "corrected_join"
BOUND_MS, WINDOW_MS = 300_000, 1_800_000


def plan(events: SignedFrame, replies: SignedFrame) -> SignedFrame:
    """Count the pairs (`n`) that are at most five minutes apart, per key and half hour, and add both numbers up."""
    from pyspark.sql import functions as F

    from tidecast.signed import count, sum_of

    pairs = events.join(replies.select(F.col("seq").alias("reply")), bound_ms=BOUND_MS)
    return pairs.window(WINDOW_MS).aggregate(
        "changelog", JOB, n=count(), seq_sum=sum_of("seq"), reply_sum=sum_of("reply")
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_plan(JOB, plan, ("events", "replies")))
