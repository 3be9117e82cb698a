"""The stateful operator of groups: keeps their partial results, tells changes of their results, lets them expire.

It runs in Spark's Python workers, where this package need not be installed: it is sent along (see `stateful`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructField, StructType, TimestampType

from tidecast.signed.columns import CLOCK, DERIVED, END, INGESTION_TIME, MULT, NOTE, ORIGIN
from tidecast.signed.groups import Partial, as_type, empty_partial, number_of, results
from tidecast.signed.reductions import Reduction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT = "keeps sums of "
"""How the last entry of a state's sums begins, which names the columns of what is kept."""


@dataclass(frozen=True)
class GroupPlan:
    """What a stateful operator does.

    Attributes:
        group: names of the columns that a result is one of.
        reductions: result columns by name; none for `distinct`.
        schema: of the output.
        values: type of each ordered row of columns, by the columns.
        final: whether a result is told only once its window is final.
        tell_ms: how far before its expiry a window is final: the lateness.
    """

    group: tuple[str, ...]
    reductions: Mapping[str, Reduction]
    schema: StructType
    values: Mapping[tuple[str, ...], StructType]
    final: bool
    tell_ms: int


class GroupProcessor(StatefulProcessor):
    """Takes a micro-batch's records of a group, and tells its old result with -1 and its new one with +1."""

    def __init__(self, plan: GroupPlan) -> None:
        """Keep the plan; the state is Spark's."""
        self._plan = plan
        self._types = {name: plan.schema[name].dataType for name in plan.reductions}
        self._end = plan.group.index(END) if END in plan.group else None
        self._instants = instants_of(plan.schema, plan.group)
        self._kept = _kept(empty_partial(tuple(plan.reductions.values())))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one value per group."""
        self._handle = handle
        self._state = handle.getValueState("group", state_type(self._plan))

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        """Take records of one group; those that come from a source and are late are counted instead."""
        for own, part in parts_of(self._handle, self._plan.group, self._instants, key, rows):
            yield from self._take(own, part, timerValues)

    def _take(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        end = None if self._end is None else key[self._end]
        watermark = timerValues.getCurrentWatermarkInMs()
        # Spark's watermark is a ms behind ours (`source`), so that its <= is our <.
        closed = end is not None and end <= watermark + 1
        stored = self._state.get()
        known = self._partial(stored)
        old = results(self._plan.reductions, known) if known.told else None
        late = taken = 0
        for row in rows:
            if closed and not row[DERIVED]:
                late += 1
                continue
            taken += 1
            known.add(dict(zip(row.__fields__, row, strict=True)), row[MULT])
            known.t_i = max(known.t_i, row[INGESTION_TIME])
            known.live = known.live or row[ORIGIN] == "live"
        if late:
            yield self._note(key, watermark, "late", late)
        if not taken:
            return
        known.told = known.told or not self._plan.final
        new = results(self._plan.reductions, known) if known.told else None
        yield from self._changes(key, known, old, new)
        if known.empty:
            self._state.clear()
            return
        self._state.update(self._stored(known))
        if stored is None and end is not None:
            self._handle.registerTimer(end - 1)
            if self._plan.final and self._plan.tell_ms:
                self._handle.registerTimer(end - 1 - self._plan.tell_ms)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Tell a result that has become final; forget a group that no record may change any more."""
        key = at_instant(self._handle, self._instants, key)
        stored = self._state.get()
        if stored is None:
            return
        assert self._end is not None
        known = self._partial(stored)
        if self._plan.final and not known.told:
            known.told = True
            yield from self._changes(key, known, None, results(self._plan.reductions, known))
        if expiredTimerInfo.getExpiryTimeInMs() >= key[self._end] - 1:
            self._state.clear()
            if known.n < 0:
                yield self._note(key, timerValues.getCurrentWatermarkInMs(), "negative", 1)
        else:
            self._state.update(self._stored(known))

    def close(self) -> None:
        """Do nothing: the state is Spark's."""

    def _changes(
        self, key: Any, known: Partial, old: dict[str, Any] | None, new: dict[str, Any] | None
    ) -> Iterator[Row]:
        if old == new:
            return
        for result, mult in ((old, -1), (new, 1)):
            if result is not None:
                typed = {name: as_type(self._types[name], value) for name, value in result.items()}
                yield self._row(key, typed, known.t_i, mult, "live" if known.live else "replay", None)

    def _note(self, key: Any, watermark: int, note: str, many: int) -> Row:
        """A row that only counts; its clock is one that Spark lets pass."""
        return self._row(key, {}, 0, many, "", note, watermark + 1)

    def _row(
        self, key: Any, result: Mapping[str, Any], t_i: int, mult: int, origin: str, note: str | None,
        clock: int | None = None,
    ) -> Row:  # fmt: skip
        row = dict(zip(self._plan.group, key, strict=True))
        row |= {name: result.get(name) for name in self._plan.reductions}
        row |= {INGESTION_TIME: t_i, MULT: mult, ORIGIN: origin, NOTE: note}
        if self._end is not None:
            row[CLOCK] = _EPOCH + timedelta(milliseconds=key[self._end] - 1 if clock is None else clock)
        return Row(*row)(*row.values())  # by position: a column may be named as an argument of Row is

    def _partial(self, stored: Any) -> Partial:
        known = empty_partial(tuple(self._plan.reductions.values()))
        if stored is None:
            known.told = not self._plan.final
            return known
        known.n, known.t_i, known.live, known.told, sums, *values = stored
        sums = self._own(sums, len(known.sums))
        known.sums = {column: (many, number_of(text)) for column, (many, text) in zip(known.sums, sums, strict=True)}
        for columns, counts in zip(known.values, values, strict=True):
            known.values[columns] = {tuple(value): net for value, net in counts}
        return known

    def _own(self, sums: Sequence[Any], many: int) -> Sequence[Any]:
        """The sums of a state, which has to be of this plan: Spark compares the types of columns, not their names.

        A release of 29 November and before named nothing.
        """
        named = bool(sums) and sums[-1][1].startswith(_KEPT)
        kept = sums[-1][1] if named else self._kept
        sums = sums[:-1] if named else sums
        if kept != self._kept or len(sums) != many:
            raise ValueError(
                f"a group of this checkpoint {kept if named else f'keeps {len(sums)} sums'}, one of the plan"
                f" {self._kept or f'{_KEPT}[]'}: start the changed plan on a new checkpoint (MergeSink: epoch one more)"
            )
        return sums

    def _stored(self, known: Partial) -> tuple[Any, ...]:
        sums = [(many, str(total)) for many, total in known.sums.values()]
        if self._kept:
            sums.append((0, self._kept))
        values = [list(counts.items()) for counts in known.values.values()]
        return (known.n, known.t_i, known.live, known.told, sums, *values)


def instants_of(schema: StructType, names: Iterable[str]) -> list[bool]:
    """Return which of some columns hold an instant, which Python has in a time zone."""
    instants = {field.name for field in schema if isinstance(field.dataType, TimestampType)}
    return [name in instants for name in names]


def parts_of(
    handle: StatefulProcessorHandle, names: Sequence[str], instants: Sequence[bool], key: Any, rows: Iterable[Row]
) -> Iterator[tuple[Any, Iterable[Row]]]:
    """Yield a key's rows apart by its instants, each time with the state of that key at hand.

    PySpark takes keys for one that Python has for equal, as two of an hour that the session's clocks show twice.
    """
    if not any(instants):
        yield key, rows
        return
    for own, part in groupby(rows, lambda row: _in_utc(instants, [row[name] for name in names])):
        handle._statefulProcessorApiClient.set_implicit_key(own)
        yield own, part


def at_instant(handle: StatefulProcessorHandle, instants: Sequence[bool], key: Any) -> Any:
    """Return a timer's key with its instants in UTC, the state of that key at hand.

    Spark gives them in the worker's time zone without saying so: of an hour that clocks there show twice it would look
    up the other one's state.
    """
    if not any(instants):
        return key
    told = _in_utc(instants, key)
    handle._statefulProcessorApiClient.set_implicit_key(told)
    return told


def _in_utc(instants: Sequence[bool], key: Iterable[Any]) -> tuple[Any, ...]:
    pairs = zip(key, instants, strict=True)
    return tuple(value.astimezone(UTC) if instant and value is not None else value for value, instant in pairs)


def state_type(plan: GroupPlan) -> StructType:
    """Return the type of a group's state, as Spark stores it and its state reader shows it."""
    summed = StructType([StructField("many", LongType()), StructField("total", StringType())])
    fields = [
        StructField("n", LongType()),
        StructField("t_i", LongType()),
        StructField("live", BooleanType()),
        StructField("told", BooleanType()),
        StructField("sums", ArrayType(summed)),
    ]
    for i, columns in enumerate(plan.values.values()):
        counted = StructType([StructField("value", columns), StructField("net", LongType())])
        fields.append(StructField(f"values_{i}", ArrayType(counted)))
    return StructType(fields)


def _kept(of: Partial) -> str:
    """What a state has by the place of its columns, in words; empty where it only counts."""
    values = [[*columns] for columns in of.values]
    return f"{_KEPT}{[*of.sums]}, values of {values}" if of.sums or values else ""
