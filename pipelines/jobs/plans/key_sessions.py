"""What a key did without a pause. `python -m pipelines.jobs.plans.key_sessions --run-dir DIR [--no-agent]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.plans.launching import run_plan

if TYPE_CHECKING:
    from tidecast.signed import SignedFrame

JOB = "key_sessions"
GAP_MS = 600_000


def plan(events: SignedFrame) -> SignedFrame:
    """Count events, add their numbers up and take the median, per session that ten minutes without events end."""
    from tidecast.signed import count, quantile_of, sum_of

    sessions = events.sessions(GAP_MS, f"{JOB} sessions")
    return sessions.aggregate(
        "changelog", JOB, n=count(), seq_sum=sum_of("seq"), median=quantile_of("seq", 0.5)
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_plan(JOB, plan))
