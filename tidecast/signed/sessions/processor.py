"""The stateful operator of sessions: keeps a key's records, and tells which go from one session to another.

It runs in Spark's Python workers, where this package need not be installed: it is sent along (see `stateful`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BooleanType, LongType, StructField, StructType

from tidecast.signed.columns import CLOCK, DERIVED, END, EVENT_TIME, INGESTION_TIME, MULT, NOTE, ORIGIN, START
from tidecast.signed.processor import at_instant, instants_of, parts_of
from tidecast.signed.sessions.members import Fact, Member, Move, ends_of, moves, with_record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SessionPlan:
    """What a stateful operator of sessions does.

    Attributes:
        keys: names of the key's columns.
        values: names of the value's.
        gap_ms: pause that ends a session.
        schema: of the output.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    gap_ms: int
    schema: StructType


class SessionProcessor(StatefulProcessor):
    """Takes a micro-batch's records of a key, and tells with -1 and +1 what its sessions lose and get by them."""

    def __init__(self, plan: SessionPlan) -> None:
        """Keep the plan; the state is Spark's."""
        self._plan = plan
        self._instants = instants_of(plan.schema, plan.keys)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one value per key."""
        self._handle = handle
        self._state = handle.getValueState("members", state_type(self._plan))

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        """Take records of one key; those that come from a source and are late are counted instead.

        A record is late by its own event time, not by the end of a session that it would make alone: it may belong to
        one that is closed.
        """
        for own, part in parts_of(self._handle, self._plan.keys, self._instants, key, rows):
            yield from self._take(own, part, timerValues)

    def _take(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        watermark = timerValues.getCurrentWatermarkInMs()
        before, timer = self._known()
        after = dict(before)
        late = 0
        for row in rows:
            # Spark's watermark is a ms behind ours (`source`), so that its <= is our <.
            if row[EVENT_TIME] <= watermark and not row[DERIVED]:
                late += 1
                continue
            fact = row[EVENT_TIME], tuple(row[name] for name in self._plan.values)
            with_record(after, fact, row[MULT], row[INGESTION_TIME], row[ORIGIN] == "live")
        if late:
            yield self._note(key, watermark, "late", late)
        if after == before:
            return
        for move in moves(before, after, self._plan.gap_ms):
            yield from self._rows_of(key, move)
        self._keep(after, timer)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Forget what no record may change any more."""
        key = at_instant(self._handle, self._instants, key)
        watermark = timerValues.getCurrentWatermarkInMs()
        members, _ = self._known()
        ends = ends_of(members, self._plan.gap_ms)
        kept = {fact: member for fact, member in members.items() if ends[fact] - 1 > watermark}
        self._keep(kept, None)
        if negative := sum(member.net < 0 for fact, member in members.items() if fact not in kept):
            yield self._note(key, watermark, "negative", negative)

    def close(self) -> None:
        """Do nothing: the state is Spark's."""

    def _rows_of(self, key: Any, move: Move) -> Iterator[Row]:
        (t_e, values), (start, end), copies, member = move
        row = dict(zip(self._plan.keys, key, strict=True)) | dict(zip(self._plan.values, values, strict=True))
        row |= {EVENT_TIME: t_e, START: start, END: end, INGESTION_TIME: member.t_i}
        row |= {MULT: 1 if copies > 0 else -1, ORIGIN: "live" if member.live else "replay", NOTE: None}
        row[CLOCK] = _EPOCH + timedelta(milliseconds=end - 1)
        # By position: a column may be named as an argument of Row is.
        yield from (Row(*row)(*row.values()) for _ in range(abs(copies)))

    def _note(self, key: Any, watermark: int, note: str, many: int) -> Row:
        """A row that only counts; its clock is one that Spark lets pass."""
        row = dict(zip(self._plan.keys, key, strict=True)) | dict.fromkeys(self._plan.values)
        row |= {EVENT_TIME: 0, START: 0, END: 0, INGESTION_TIME: 0, MULT: many, ORIGIN: "", NOTE: note}
        row[CLOCK] = _EPOCH + timedelta(milliseconds=watermark + 1)
        return Row(*row)(*row.values())

    def _known(self) -> tuple[dict[Fact, Member], int | None]:
        """The key's members, and when it is to be looked at next."""
        stored = self._state.get()
        if stored is None:
            return {}, None
        members, timer = stored
        return {(t_e, tuple(values)): Member(*member) for t_e, *member, values in map(_flat, members)}, timer

    def _keep(self, members: dict[Fact, Member], timer: int | None) -> None:
        """Store the members, and have the timer at the first end of any."""
        ends = ends_of(members, self._plan.gap_ms)
        following = min(ends.values()) - 1 if ends else None
        if timer is not None and timer != following:
            self._handle.deleteTimer(timer)
        if following is not None and timer != following:
            self._handle.registerTimer(following)
        if following is None:
            self._state.clear()
        else:
            rows = [(t_e, *member, *values) for (t_e, values), member in members.items()]
            self._state.update((rows, following))


def _flat(row: Any) -> tuple[Any, ...]:
    """A stored member with its values as one."""
    t_e, net, t_i, live, *values = row
    return t_e, net, t_i, live, values


def state_type(plan: SessionPlan) -> StructType:
    """Return the type of a key's state, as Spark stores it and its state reader shows it."""
    fields = [StructField(name, LongType()) for name in ("t_e", "net", "t_i")]
    fields.append(StructField("live", BooleanType()))
    fields += [StructField(f"v{i}", plan.schema[name].dataType) for i, name in enumerate(plan.values)]
    return StructType([StructField("members", ArrayType(StructType(fields))), StructField("timer", LongType())])
