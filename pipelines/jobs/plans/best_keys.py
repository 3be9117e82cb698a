"""The busiest windows of each day. `python -m pipelines.jobs.plans.best_keys --run-dir DIR [--no-agent]`.

An aggregate of an aggregate: a retraction changes a window's count, which takes its old place in the day back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from models.relation.aggregates import Aggregate
from models.relation.linear import Map, Rekey, tumbling
from models.relation.ordered import TopN
from models.relation.reducers import Count
from pipelines.jobs.plans.launching import run_plan
from pipelines.jobs.plans.records import SignedEvent
from pipelines.jobs.plans.results import Results, relation_of
from pipelines.jobs.windows import result_key

if TYPE_CHECKING:
    from tidecast.signed import SignedFrame

JOB = "best_keys"
WINDOW_MS, DAY_MS, BEST = 600_000, 86_400_000, 3


def plan(events: SignedFrame) -> SignedFrame:
    """Rank the keys' windows of ten minutes by their events: the three best of each day, ties by the greater key."""
    from tidecast.signed import count, top

    counts = events.window(WINDOW_MS).aggregate("changelog", f"{JOB} counts", n=count())
    return counts.rekey().window(DAY_MS).aggregate("changelog", JOB, windows=count(), best=top(BEST, "n", "key"))


def truth(events: Iterable[SignedEvent]) -> Results:
    """Return what the plan has to come to."""
    counts = Aggregate(Count()).apply(tumbling(WINDOW_MS).apply(relation_of(events)))
    ranked = Map(lambda k, v, t_e: (v, k.key)).apply(counts)
    days = tumbling(DAY_MS).apply(Rekey(lambda k, v, t_e: "").apply(ranked))
    many = {k: v for (k, v, _) in Aggregate(Count()).apply(days)}
    found: Results = {}
    for k, v, _ in Aggregate(TopN(BEST)).apply(days):
        best = [{"n": n, "key": key} for n, key in v]
        found[result_key(JOB, "", *k.window)] = {"windows": many[k], "best": best}
    return found


if __name__ == "__main__":
    sys.exit(run_plan(JOB, plan))
