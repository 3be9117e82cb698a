"""How many records a replay may read in its next batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

FASTER = 2.0
"""Most by which a batch may grow over the one before: its tasks' length is known of what was read only."""
SAVE_S = 10.0
"""Longest that a replay saves its rate up for one batch, seconds: a batch, however small, takes planning by the driver
and a task of every partition from live records, so few large ones cost less than many small ones."""


class Pace(NamedTuple):
    """What a replay's newest batch that read anything told: records, and seconds from its start to the next.

    `task_s` is the mean run time of a task of the heaviest stage, `work_s` that of all tasks of all stages together.
    """

    rows: int
    period_s: float
    task_s: float
    work_s: float = 0.0


def rows_per_batch(rps: float, before: Pace | None, task_s: float, partitions: int) -> int:
    """Return the records that the next batch may read: as many as are saved up in SAVE_S, as far as tasks stay short.

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
    short = before.rows * task_s / before.task_s if before.task_s > 0 else math.inf
    return max(int(min(rps * SAVE_S, short, FASTER * before.rows)), partitions)


@dataclass
class Debt:
    """Records that were read before the rate allowed them: none are read while there is one.

    Attributes:
        rows: what is owed; below 0 never.
    """

    rows: float = 0.0

    def pay(self, rps: float, seconds: float) -> None:
        """Pay it off by what a rate allows in so many seconds."""
        self.rows = max(self.rows - rps * seconds, 0.0)

    def owe(self, rows: int, rps: float, seconds: float) -> None:
        """Add a batch that took so many seconds, in which the rate went on."""
        self.rows = max(self.rows + rows - rps * seconds, 0.0)
