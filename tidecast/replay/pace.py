"""How many records a replay may read in its next batch."""

from __future__ import annotations

import math
from typing import NamedTuple

FASTER = 2.0
"""Most by which a batch may grow over the one before: its tasks' length is known of what was read only."""


class Pace(NamedTuple):
    """What a replay's newest batch that read anything told: records, seconds from its start to the next, task seconds.

    `task_s` is the mean run time of a task of the heaviest stage.
    """

    rows: int
    period_s: float
    task_s: float


def rows_per_batch(rps: float, before: Pace | None, task_s: float, partitions: int) -> int:
    """Return the records that the next batch may read: those of the rate, as far as its tasks stay short.

    Args:
        rps: rate that is admitted, records per wall second.
        before: the newest batch; None before one has read anything: it reads one record of each partition.
        task_s: how long a task may be.
        partitions: that the replay reads.

    Returns:
        At least one per partition where the rate is above 0, because Spark rounds a partition's part down; 0 otherwise.
    """
    if not rps > 0:
        return 0
    if before is None or before.rows < 1:
        return partitions
    wanted = rps * before.period_s
    short = before.rows * task_s / before.task_s if before.task_s > 0 else math.inf
    return max(int(min(wanted, short, FASTER * before.rows)), partitions)
