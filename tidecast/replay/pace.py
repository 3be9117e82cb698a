"""How many records a replay's next batch may read; pure, so that it is tested without Spark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

FASTER = 4.0
"""Most by which a batch may grow over the one before: its tasks' length is known of what was read only."""
SAVE_S = 10.0
"""Seconds of its rate that a replay's batch reads ahead: a batch, however small, takes planning by the driver and tasks
from live records, so few large ones cost less than many small ones. With half of that the taxi day's replay took a
third longer; bursts, which a batch that is under way goes on beside, cost live records less. As many seconds of it are
saved up, at most, while a batch waits."""
APART_S = 5.0
"""Seconds from the start of a batch to that of the next one that are enough where live batches leave pauses, however
long it took: small ones, back to back, kept live batches at half as long again, where large ones did not."""
WORTH = 4
"""Records of each partition that a batch reads, the first one among them: for fewer it is not worth its tasks."""
FIXED = 0.3
"""Most of a task's share for its records that it is believed to take whatever it reads: the least that was seen holds
records, too."""
SPLIT = 2.0
"""How many times as long as they should tasks may take where more records are more tasks: then fewer are read."""
SLOW_START_S = 30.0
"""Seconds from a replay's first batch that a plan counts for that one, the small ones by which it finds out what one
may hold, and until live records have borne it: in them next to nothing is read. On two cores 1,312 records were read in
52 s, which later took 21 s."""
FADE = 0.7
"""Weight of all batches before, in that of the newest one, in what a replay comes to of its rate."""
COLD_S = 2.0
"""What a task of a query's first batch is believed to take whatever it reads: executors load what it runs, seconds."""


class Pace(NamedTuple):
    """What a replay's newest batch that read anything told: its records, and seconds of its tasks.

    `task_s` is the mean run time of one of the `tasks` of the stage that ran the longest in all. Not of that whose
    tasks are the longest: a few that write state take as long for next to no records, and less to read would make them
    no shorter. `work_s` is that of all tasks of all stages. `fixed_s` of a task it is believed to take whatever it
    reads. Of the query's `first` batch next to nothing is known: executors loaded what it runs.
    `span` are the offsets that it went through, which limits count: of a compacted topic more than its records.
    """

    rows: int
    task_s: float
    work_s: float = 0.0
    fixed_s: float = 0.0
    first: bool = False
    tasks: int = 0
    span: int = 0

    @property
    def limited(self) -> int:
        """What a limit counts of it: the offsets, where these are more than the records."""
        return max(self.rows, self.span)

    @property
    def may_grow_to(self) -> float:
        """Records that the batch after it may read at most: of a cold first one as many, for it tells too little."""
        return self.limited * (1.0 if self.first else FASTER)

    def was_split(self, task_rows: int | None) -> bool:
        """Whether its tasks were as many as its offsets ask for: not where the plan reads a range by fewer tasks."""
        return task_rows is not None and self.tasks * task_rows >= self.limited


def fixed_part(so_far: Sequence[float], task_s: float) -> float:
    """Return what a task takes whatever it reads, as batches have told, the last one among them; seconds.

    Args:
        so_far: mean task seconds of each batch, at least of one.
        task_s: how long the records of a task should take.
    """
    return COLD_S if len(so_far) == 1 else min(*so_far[1:], FIXED * task_s)


def rows_per_task(task_s: float, record_s: float | None) -> int | None:
    """Return the records that a task of a replay reads at most, so that it takes about `task_s`; None: not known.

    Args:
        task_s: how long the records of a task should take, seconds.
        record_s: of a live record; a replayed one costs about as much.
    """
    return None if record_s is None or record_s <= 0 else max(int(task_s / record_s), WORTH)


def rows_per_batch(
    rps: float, before: Pace | None, task_s: float, partitions: int, worth: int = 0, split: bool = False,
    saved: float = 0.0,
) -> int:  # fmt: skip
    """Return the records that the next batch may read: what is saved, and SAVE_S of the rate, if tasks stay short.

    The second batch reads no more than a cold first one: only then what a record takes is seen.

    Args:
        rps: rate that is admitted, records per wall second.
        before: the newest batch; None before one.
        task_s: how long the records of a task should take beyond what every task takes, seconds.
        partitions: of the range; of fewer records Spark would read none.
        worth: fewest records that a batch is run for, the first one among them: at a low rate they are read all the
            same, and waited for afterwards.
        split: whether more records are more tasks, and not longer ones (`rows_per_task`): then they are short as long
            as those of the batch before were, and fewer than `worth` would make none of them shorter.
        saved: what the rate has allowed before and was not read, at least 0.

    Returns:
        0 for no rate; else at least `partitions`.
    """
    if rps <= 0:
        return 0
    if before is None or before.rows < 1:
        return max(worth, partitions)
    own_s = before.task_s - before.fixed_s
    short = before.limited * task_s / own_s if own_s > (SPLIT * task_s if split else 0) else math.inf
    most = min(max(rps * SAVE_S + saved, worth), short, before.may_grow_to)
    return max(int(most), worth if split else partitions, partitions)


def apart_s(batch_s: float, live_s: float = 0.0) -> float:
    """Return the seconds from the start of a batch that took so many until the next one may begin.

    What it took is left to live records then, but no more than that APART_S come together, or as long as one batch of
    theirs takes: on a slow computer a small batch takes as long as a large one, and the next would begin at once. The
    rest begins and ends in the midst of batches of theirs, so that few of these are wholly without one.

    Args:
        batch_s: what it took.
        live_s: what a batch of live records takes where these leave no pause; else 0.
    """
    return batch_s + min(batch_s, max(APART_S - batch_s, live_s))


@dataclass
class Balance:
    """What the rate has allowed a replay and what it has read of that.

    What is allowed while a batch waits, for a pause between live batches or for the driver, is saved: the next one
    reads it, too. Else a replay came to nine tenths of its rate on a steady load.

    Attributes:
        rows: records that are saved; below 0 what was read before the rate allowed it: until then none are read.
    """

    rows: float = 0.0

    def allow(self, rps: float, seconds: float) -> None:
        """Count what a rate allows in so many seconds."""
        self.rows += rps * seconds

    def read(self, rows: int) -> None:
        """Count a batch that was read."""
        self.rows -= rows

    def bound(self, rps: float, worth: int, left: int, saves: bool) -> None:
        """Let no more be owed than SAVE_S of the rate, or than a smallest batch if one is left; nor more be saved.

        The rate falls with what is left to be read: the debt of a whole small batch would be paid off for minutes by
        that of the last two records. And what was saved at a higher rate is not left over any more.

        Args:
            rps: rate that is admitted, records per wall second.
            worth: fewest records that a batch is run for.
            left: that are to be read.
            saves: whether anything is saved: only while a batch is due. What a batch takes longer than its rate pays
                for, and the rest that live records have after it, are theirs.
        """
        most = rps * SAVE_S
        if rps > 0:  # a pause pays nothing off
            self.rows = max(self.rows, -max(most, min(worth, left)))
        self.rows = min(self.rows, most if saves else 0.0)


@dataclass
class Reached:
    """What share of the records that its rate has allowed a replay has read: the rest went by while it waited.

    Batches wait for pauses between live ones, for the driver, and for cores, longer than they save up for; and few or
    short tasks use no more of what is left over than they can. Those of the slow start tell nothing of it, nor do those
    after it that were let read as much as may follow the one before: a plan of 120 s took a replay for one that
    would come to 0.15 of its rate for good, which read all of it in its next two batches.

    Attributes:
        read, allowed: records of the newest batches, and those that the rate allowed from one's end to the next one's.
        since: allowed since the end of the newest one, whether it counts or not.
    """

    read: float = 0.0
    allowed: float = 0.0
    since: float = 0.0

    def allow(self, rps: float, seconds: float) -> None:
        """Count what a rate has allowed in so many seconds."""
        self.since += rps * seconds

    def end(self, rows: int) -> None:
        """Count a batch that has ended."""
        self.read, self.allowed = FADE * self.read + rows, FADE * self.allowed + self.since
        self.since = 0.0

    def pass_over(self) -> None:
        """Count neither a batch that has ended nor what its rate has allowed."""
        self.since = 0.0

    @property
    def share(self) -> float | None:
        """0 to 1; None before a batch that counts, or where nothing was allowed."""
        return min(self.read / self.allowed, 1.0) if self.allowed > 0 else None
