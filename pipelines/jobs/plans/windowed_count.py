"""Events per key and window of event time. `python -m pipelines.jobs.plans.windowed_count --run-dir DIR [--no-agent]`.

A key's total is the sum of its windows (`results.totals_per_key`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from models.relation.aggregates import Aggregate
from models.relation.linear import tumbling
from models.relation.reducers import Count, RowOf, Sum
from pipelines.jobs.plans.launching import run_plan
from pipelines.jobs.plans.records import SignedEvent
from pipelines.jobs.plans.results import Results, expected, relation_of

if TYPE_CHECKING:
    from tidecast.signed import SignedFrame

JOB = "windowed_count"
WINDOW_MS = 600_000


def plan(events: SignedFrame) -> SignedFrame:
    """Count events (`n`) and add their sequence numbers up (`seq_sum`) per key and window of ten minutes."""
    from tidecast.signed import count, sum_of

    return events.window(WINDOW_MS).aggregate("changelog", JOB, n=count(), seq_sum=sum_of("seq"))


def truth(events: Iterable[SignedEvent]) -> Results:
    """Return what the plan has to come to."""
    windows = tumbling(WINDOW_MS).apply(relation_of(events))
    return expected(JOB, Aggregate(RowOf((Count(), Sum()))).apply(windows), ("n", "seq_sum"))


if __name__ == "__main__":
    sys.exit(run_plan(JOB, plan))
