"""What is ordered of a replay, and what its driver says of it: messages on the topics `control` and `replays`."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from tidecast.fields import (
    COUNT_MOST,
    Bounds,
    Count,
    JobName,
    MessageError,
    Millis,
    OneOf,
    Rate,
    Scale,
    Seconds,
    Tasks,
    Time,
    short_repr,
)
from tidecast.wire import SCHEMA

WANTED = ("run", "pause", "cancel", "done")
STATES = ("waiting", "running", "paused", "read", "compared", "done", "cancelled", "failed")
THEN = ("publish", "compare")
LATER_S = 0.001
"""By which an order that replaces another is later, where the clock is not: the latest one holds."""


def order_key(job: str, replay: str) -> str:
    """Return the key on topic `control` of a replay's newest order, `<job>:replay:<id>`."""
    return f"{job}:replay:{replay}"


@dataclass(frozen=True)
class ReplayOrder:
    """A range of topics that a job is to read again.

    `starts` and `ends` are {topic: {partition: offset}}, of which the end is not read. `wanted`: run, pause (go on
    later), cancel (leave nothing behind), or done, which the job's agent says once it is. `most_rps` bounds its rate,
    records per wall second; where nobody decides one, it is the rate. `weight` is its part among replays that run at
    once, which a plan sets to the rate that it needs unless it is `weighted` by a person, `task_s` how long the records
    of a task should take: a core that live records need is theirs soon after. Results from `begin_ms` to `end_ms`, of
    the job's own time in ms since the epoch, are those that it may correct. `schedule` says how many executors beyond
    the live job's it is to have, as [[job time, executors], ...], each from its time on: what is planned so that it is
    done `by` a job time with the probability `sure`. What the schedule asks for within `keep_s` wall seconds is not
    given back before, if it runs. `finish` is when the plan had it done, as [[probability, job time], ...], both
    rising. `then` says what comes after all of it is read: it is published, or compared with what readers see and kept
    until it is to be published. `table` is the path of a table of the same columns from which the range is read, "" for
    the topics themselves. `cost` is what a record is believed to cost, in units of a live one; null: not known, and it
    counts as much. `holds` is the newest version of the live results whose records all lie before `ends`, where that
    was known when it was ordered. Windows that begin at `open_ms` or later are in records from `open_starts` on.
    `task_rows` are the records that a task reads at most, as the job's agent fills in when it begins: so many take
    about `task_s`. It is read in an application of its own of so many executors where it says `apart`, else beside the
    live query (`tidecast.replay.apart`).
    """

    id: JobName
    job: JobName
    wall_time: Time
    wanted: Annotated[str, OneOf(WANTED)]
    starts: dict[str, Any]
    ends: dict[str, Any]
    most_rps: Rate | None = None
    weight: Rate = 1.0
    task_s: Seconds = 0.5
    begin_ms: Millis | None = None
    end_ms: Millis | None = None
    schedule: list[Any] = field(default_factory=list)
    table: str = ""
    holds: Count | None = None
    open_ms: Millis | None = None
    open_starts: dict[str, Any] = field(default_factory=dict)
    by: Time | None = None
    sure: Annotated[float, Bounds(0, 1)] | None = None
    then: Annotated[str, OneOf(THEN)] = "publish"
    cost: Rate | None = None
    keep_s: Seconds = 0.0
    task_rows: Tasks | None = None
    finish: list[Any] = field(default_factory=list)
    weighted: bool = False
    apart: Tasks | None = None
    schema: int = SCHEMA

    WANTED: ClassVar = WANTED

    def check(self) -> None:
        """Check the range.

        Raises:
            MessageError: no partitions, others in `ends` or `open_starts` than in `starts`, no offsets, or an end
                before its start; a schedule that is no list of rising times and whole numbers; a finish that is none of
                rising probabilities and times.
        """
        _check_schedule(self.schedule)
        _check_finish(self.finish)
        starts, ends = by_partition(self.starts, "starts"), by_partition(self.ends, "ends")
        if not starts or {*starts} != {*ends}:
            raise MessageError(
                f"starts name {len(starts)} partitions and ends {len(ends)}: give both of each partition of the range"
            )
        for place, first in starts.items():
            if ends[place] < first:
                raise MessageError(f"ends{list(place)}={ends[place]}: it is before the start, {first}")
        opens = by_partition(self.open_starts, "open_starts")
        if (self.open_ms is None) != (not opens) or (opens and {*opens} != {*starts}):
            raise MessageError("open_ms and open_starts go together, with a start of each partition of the range")

    @property
    def first(self) -> dict[tuple[str, int], int]:
        """First offset by (topic, partition)."""
        return by_partition(self.starts, "starts")

    @property
    def past(self) -> dict[tuple[str, int], int]:
        """Offset after the last one, by (topic, partition)."""
        return by_partition(self.ends, "ends")

    @property
    def open_first(self) -> dict[tuple[str, int], int]:
        """First offset of what windows that begin at `open_ms` or later hold, by (topic, partition)."""
        return by_partition(self.open_starts, "open_starts")

    def executors_at(self, job_time: float) -> int:
        """Return how many executors beyond the live job's it is to have at a job time, epoch seconds."""
        return next((int(executors) for at, executors in reversed(self.schedule) if at <= job_time), 0)

    def executors_between(self, begin: float, end: float) -> int:
        """Return the most executors beyond the live job's that it is to have from one job time to another."""
        return max(
            [self.executors_at(begin), *(int(executors) for at, executors in self.schedule if begin <= at < end)]
        )

    @property
    def records(self) -> int:
        """How many offsets the range spans."""
        return sum(self.past.values()) - sum(self.first.values())


@dataclass(frozen=True)
class ReplayProgress:
    """How far a replay is, at least every 10 s while it is not over.

    `state`: waiting (for its first batch, or for a rate), running, paused, read (all of the range is, and is being
    published or compared), compared (and waits until it is to be published; `reason` tells the difference), done,
    cancelled, failed (with the reason, and whether it is `tried_again` by itself). `done` of `records` are processed;
    `admitted_rps` is the rate that it is admitted with and `rps` what it came to; of the records that its rate has
    allowed lately it has read the share `reached`, as its batches waited; `rows` of a batch that took `batch_s`, its
    longest tasks `task_s` each, all of its tasks together `work_s`; its query was started at the wall time
    `reading_since`. `executors` are those beyond the live job's that its schedule asks for now, `executors_soon` those
    that it keeps if they run, `cost` what its order believes of a record. It is `warm` where a dry run has made its
    first batch quick. One that is read `apart`, by so many executors of its own, takes nothing from live records. Its
    order was of the wall time `ordered_at`.
    """

    id: JobName
    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    state: Annotated[str, OneOf(STATES)]
    records: Count
    done: Count
    admitted_rps: Rate | None = None
    rps: Rate | None = None
    rows: Count | None = None
    batch_s: Seconds | None = None
    task_s: Seconds | None = None
    reason: str = ""
    executors: Count | None = None
    work_s: Seconds | None = None
    cost: Rate | None = None
    reading_since: Time | None = None
    executors_soon: Count | None = None
    warm: bool = False
    apart: Tasks | None = None
    ordered_at: Time | None = None
    reached: Annotated[float, Bounds(0, 1)] | None = None
    tried_again: bool = False
    schema: int = SCHEMA

    def answers(self, order: ReplayOrder) -> bool:
        """Return whether it is said of an order, or of one in its place; clocks count where an agent is older alone."""
        return (self.wall_time if self.ordered_at is None else self.ordered_at) >= order.wall_time


def standing_order(known: ReplayOrder | None, coming: ReplayOrder) -> ReplayOrder:
    """Return which of two orders of a replay holds, for all who read orders: the one of the later `wall_time`.

    What is read last may be old: agents that connect again read `control` from its beginning, and others can send a
    signed order again. Whoever changes an order gives it a later time than it had (`later_than`), also where a clock
    was set back or is behind, so that an order's time may be ahead of every clock. Of two that are given at once, by
    whoever did not know of the other's, the later one by their clocks holds, for all readers alike.

    Args:
        known: that held so far; None: there was none.
        coming: of the same replay.
    """
    return coming if known is None or coming.wall_time > known.wall_time else known


def later_than(known: ReplayOrder | None, now: float) -> float:
    """Return a wall time for an order that is to replace a known one: now, or just after it if clocks disagree.

    Args:
        known: None: there is none.
        now: wall time, epoch seconds.
    """
    return now if known is None else max(now, known.wall_time + LATER_S)


def _check_schedule(schedule: list[Any]) -> None:
    try:
        times = [at for at, n in schedule if type(at) in (int, float) and type(n) is int and 0 <= n <= COUNT_MOST]
    except (TypeError, ValueError):
        times = [math.nan]
    if len(times) != len(schedule) or not all(a < b for a, b in itertools.pairwise([-1.0, *times, COUNT_MOST])):
        raise MessageError(
            f"schedule={short_repr(schedule)}: [[job time, executors], ...] with rising times is expected"
        )


def _check_finish(finish: list[Any]) -> None:
    try:
        known = [(share, at) for share, at in finish if {type(share), type(at)} <= {int, float}]
    except (TypeError, ValueError):
        known = []
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise([(0.0, 0.0), *known, (1.0, COUNT_MOST)]))
    if len(known) != len(finish) or not rising:
        raise MessageError(f"finish={short_repr(finish)}: [[probability, job time], ...], both rising, is expected")


def by_partition(offsets: Any, name: str) -> dict[tuple[str, int], int]:
    """Return {(topic, partition): offset} of {topic: {partition: offset}}.

    Raises:
        MessageError: it has another form, or holds a partition or an offset below 0.
    """
    try:
        found = {(topic, int(part)): offset for topic, parts in offsets.items() for part, offset in parts.items()}
    except (AttributeError, ValueError, TypeError):
        found = None
    if found is None or not all(n >= 0 and type(at) is int and 0 <= at <= COUNT_MOST for (_, n), at in found.items()):
        raise MessageError(f"{name}={short_repr(offsets)}: {{topic: {{partition: offset}}}} is expected")
    return found
