"""Row: how soon live records are within their target again after an outage, the newest first against in order."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipelines.bench.backfill.arrangement import EXECUTORS, SERVICE_MS, live_contract, seed_of
from pipelines.bench.backfill.cells import Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.loads import STEADY, Floats

ROW, LOADS = "outage", (STEADY,)
IN_ORDER, LIVE_FIRST, AT_ONCE = "in order", "live first", "in order at once"
"""Arms; the last one reads all that waits in one batch, where the others' batches are bounded."""
ARMS = (IN_ORDER, LIVE_FIRST, AT_ONCE)
MINUTES, TURNS = 2.0, 1
"""Minutes by the clock for which the job is away; sessions of each arm."""
TARGET_S, HOLD_S = 45.0, 20
"""Target of the job, which merges its results into a table: on two cores that takes eight to ten seconds a batch, so
that records wait for up to twenty on an ordinary day, and for up to forty beside a replay that writes its own; seconds
for which it is kept once it counts as kept."""
OFFSETS = 2000
"""Most records of a batch: with its merge it takes less than half of the target, as batches that follow each other
have to."""
MERGE_S = 4.0
"""What a batch takes beside its records, which the contract of each arm tells."""
SETTLED_S, MOST_S = 120.0, 1200.0
"""Seconds of the load before the outage, and after which a job that is not back is given up."""


@dataclass(frozen=True)
class OutageSession:
    """What a session runs: a job that is killed and started again.

    Attributes:
        order: of its records when it starts again, as the contract says it.
        down_s: how long it is away.
        offsets: most records of a batch; None: as many as wait.
        seed: of the live records; the same for all arms of a turn.
    """

    order: str
    down_s: float
    offsets: int | None
    seed: int

    @property
    def expected_s(self) -> float:
        """About how long it lasts, seconds."""
        return SETTLED_S + 3 * self.down_s

    @property
    def most_s(self) -> float:
        """The longest that it lasts, seconds."""
        return SETTLED_S + self.down_s + MOST_S

    def contract(self, job: str) -> dict[str, Any]:
        """Return the job's contract as its file says it."""
        return merging_contract(job, self.order)


def merging_contract(job: str, order: str) -> dict[str, Any]:
    """Return the contract of a job that merges, on all executors, as its file says it; `order` is its recovery's."""
    live, recovery = (EXECUTORS, EXECUTORS), {"order": order}
    return live_contract(job, live, TARGET_S, TARGET_S, SERVICE_MS / 1000, MERGE_S, recovery=recovery)


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load: all arms in turn."""
    return take_turns(ROW, load, ARMS, TURNS, minutes)


def arrange_outage(cell: MeasuredCell) -> OutageSession:
    """Arrange a cell."""
    order, offsets = (
        ("live_first" if cell.arm == LIVE_FIRST else "in_order"),
        (None if cell.arm == AT_ONCE else OFFSETS),
    )
    return OutageSession(order, 60 * cell.minutes, offsets, seed_of(cell))


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        By arm, medians of the seconds from the start of the process: `back_s`, until live records were within TARGET_S
        again, and `filled_s`, until all from before were in the table (None where one never was); `late_s`, seconds
        after `back_s` in which one was late; `ratio` of newest first to in order. `wrong` of `windows` of all tables,
        once TURNS sessions of MINUTES of each arm are there; `n`, of the one with the fewest.
    """
    arms = of_row(kept, ROW, load, MINUTES)
    back, filled, late = (
        {arm: _median([one[name] for one in arms.get(arm, [])]) for arm in ARMS}
        for name in ("back_s", "filled_s", "late_s")
    )
    n = min(len(arms.get(arm, [])) for arm in back)
    first, ordered, whole = back[LIVE_FIRST], back[IN_ORDER], n >= TURNS
    every = [one for each in arms.values() for one in each]
    return {
        "back_s": back, "ratio": first / ordered if whole and first is not None and ordered is not None else None,
        "filled_s": filled, "late_s": late,
        "wrong": sum(one["wrong"] for one in every) if whole else None,
        "windows": sum(one["windows"] for one in every), "n": n,
    }  # fmt: skip


class BackAgain(NamedTuple):
    """Seconds from a moment on until live records are within TARGET_S (None: never), and seconds late from there on."""

    back_s: float | None
    late_s: float | None


def back_after(produced_at: Floats, latency_s: Floats, began: float) -> BackAgain:
    """Find the first of HOLD_S seconds of production after a moment in which no record is late.

    Args:
        produced_at: (N,) epoch seconds of the records, of each second one at least.
        latency_s: (N,) of them; inf for those that were not in results while they were looked for.
        began: epoch seconds.
    """
    since = np.floor(produced_at - began).astype(np.int64)
    last = int(since.max(initial=-1))
    late = {int(second) for second in np.unique(since[latency_s > TARGET_S])}
    for at in range(last - HOLD_S + 2):
        if not late & {*range(at, at + HOLD_S)}:
            return BackAgain(float(at), float(sum(second >= at for second in late)))
    return BackAgain(None, None)


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
