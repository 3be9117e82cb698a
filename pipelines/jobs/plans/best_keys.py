"""The busiest windows of each day. `python -m pipelines.jobs.plans.best_keys --run-dir DIR [--no-agent]`.

An aggregate of an aggregate: a retraction changes a window's count, which takes its old place in the day back.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.plans.launching import run_plan

if TYPE_CHECKING:
    from tidecast.signed import SignedFrame

JOB = "best_keys"
WINDOW_MS, DAY_MS, BEST = 600_000, 86_400_000, 3


def plan(events: SignedFrame) -> SignedFrame:
    """Rank the keys' windows of ten minutes by their events: the three best of each day, ties by the greater key."""
    from tidecast.signed import count, top

    counts = events.window(WINDOW_MS).aggregate("changelog", f"{JOB} counts", n=count())
    return counts.rekey().window(DAY_MS).aggregate("changelog", JOB, windows=count(), best=top(BEST, "n", "key"))


if __name__ == "__main__":
    sys.exit(run_plan(JOB, plan))
