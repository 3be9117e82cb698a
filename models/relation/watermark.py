"""Watermarks of sources: from which event time on records are still to be expected.

Akidau et al., "The Dataflow Model", PVLDB 8(12) (2015); Awad et al., "Watermarks in Stream Processing Systems", PVLDB
14(12) (2021). All watermarks are ms, or -inf before anything is known, or +inf after the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from models.relation.records import RelationError

OPEN, ENDED = -math.inf, math.inf
"""Watermark of a source of which nothing is known yet, and of one that has ended."""


@dataclass(frozen=True)
class Source:
    """An input of a plan: one relation, be it a table, a stream, or a replay that live records follow.

    Attributes:
        name: as nodes name it.
        delay_ms: how far behind the newest event time of its partition a record may come and still be expected.
        partitions: how many there are; the slowest one holds the watermark back.
        idle_ms: ingestion time without a record after which a partition no longer does; None: it always does.
    """

    name: str
    delay_ms: int = 0
    partitions: int = 1
    idle_ms: int | None = None

    def __post_init__(self) -> None:
        if self.delay_ms < 0:
            raise RelationError(f"delay of source {self.name!r}, {self.delay_ms} ms: give 0 or more")
        if self.partitions < 1:
            raise RelationError(f"partitions of source {self.name!r}, {self.partitions}: give 1 or more")
        if self.idle_ms is not None and self.idle_ms <= 0:
            raise RelationError(f"idle_ms of source {self.name!r}, {self.idle_ms}: give more than 0, or None for never")


class PartitionClock(NamedTuple):
    """The newest event time of a partition (-inf before its first record), and when it last brought one (ms)."""

    newest: float
    heard_at: int


@dataclass(frozen=True)
class SourceWatermark:
    """How far a source has come.

    Attributes:
        value: the watermark, ms: no record with an earlier event time is expected.
        partitions: one clock each; none before the first micro-batch.
    """

    value: float = OPEN
    partitions: tuple[PartitionClock, ...] = ()


def advance_watermark(source: Source, known: SourceWatermark, newest: Mapping[int, int], now: int) -> SourceWatermark:
    """Return W = max(W before, min over partitions of (newest event time - delay)).

    A partition without a record for `idle_ms` is left out of the minimum until it brings one again; what it brings then
    may be late, because W never falls. A partition that has brought none yet counts from the first micro-batch on. If
    all are idle W stays where it is.

    Args:
        source: whose partitions these are.
        known: before the micro-batch.
        newest: largest event time in the micro-batch, ms, per partition that brought anything. Retractions count too.
        now: ingestion time at which the micro-batch was cut, ms.
    """
    clocks = list(known.partitions or (PartitionClock(OPEN, now),) * source.partitions)
    for partition, t_e in newest.items():
        clocks[partition] = PartitionClock(max(clocks[partition].newest, t_e), now)
    awake = [clock.newest for clock in clocks if source.idle_ms is None or now - clock.heard_at < source.idle_ms]
    value = max(known.value, min(awake) - source.delay_ms) if awake else known.value
    return SourceWatermark(value, tuple(clocks))


def end_source(known: SourceWatermark) -> SourceWatermark:
    """Return the watermark of a source that brings nothing any more: +inf."""
    return replace(known, value=ENDED)
