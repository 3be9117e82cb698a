"""Random change logs: two or more sources out of order, with retractions, some before their insertions, skewed keys.

They are what an engine's operators are tried on, against `run_batch` and `run_stream`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from models.relation.records import Relation, RelationError, SignedRecord, net
from models.relation.stream import Arrival, MicroBatch
from models.workload.keys import zipf


@dataclass(frozen=True)
class LogShape:
    """What change logs look like.

    Attributes:
        sources: names; each source has its own records.
        records: insertions per source.
        partitions: per source; a key's records all come by one.
        keys: how many there are: the ints from 0 on.
        skew: exponent of Zipf's law over them; 0: all are as frequent.
        values: how many there are: the ints from 0 on. Few, so that facts repeat.
        gap_ms: mean time between two insertions of a source.
        disordered: share of insertions that come later than they happened, 0 to 1.
        disorder_ms: median delay of those; log-normal with sigma 1, cut at ten times this.
        retracted: share of insertions that are retracted, 0 to 1.
        retract_ms: mean time until then; exponential.
        early: share of retractions that come before their insertion, 0 to 1.
        orphaned: share of retractions whose insertion never comes, 0 to 1.
        replayed: share of the log, from its begin on, that comes from a replay, 0 to 1.
        batches: micro-batches that the log is cut into, some of which may be empty.
    """

    sources: tuple[str, ...] = ("left", "right")
    records: int = 25
    partitions: int = 1
    keys: int = 5
    skew: float = 1.1
    values: int = 4
    gap_ms: float = 20.0
    disordered: float = 0.4
    disorder_ms: float = 50.0
    retracted: float = 0.4
    retract_ms: float = 100.0
    early: float = 0.3
    orphaned: float = 0.0
    replayed: float = 0.3
    batches: int = 8

    def __post_init__(self) -> None:
        for name in ("disordered", "retracted", "early", "orphaned", "replayed"):
            if not 0 <= getattr(self, name) <= 1:
                raise RelationError(f"{name} of a change log, {getattr(self, name)}: give a share from 0 to 1")
        for name in ("records", "partitions", "keys", "values", "batches"):
            if getattr(self, name) < 1:
                raise RelationError(f"{name} of a change log, {getattr(self, name)}: give 1 or more")


@dataclass(frozen=True)
class ChangeLog:
    """Records of several sources, cut into micro-batches."""

    sources: tuple[str, ...]
    batches: tuple[MicroBatch, ...]

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """All of them, in order of arrival."""
        return tuple(arrival for batch in self.batches for arrival in batch.arrivals)

    @property
    def relations(self) -> dict[str, Relation]:
        """What the records of each source add up to: the batch tables."""
        return {name: net(record for source, record, _ in self.arrivals if source == name) for name in self.sources}

    @property
    def disorder_ms(self) -> dict[str, int]:
        """Per source the least delay with which none of its records is behind its watermark; less makes late ones."""
        most = dict.fromkeys(self.sources, 0)
        newest: dict[str, int] = {}
        for source, record, _ in self.arrivals:
            newest[source] = max(newest.get(source, record.t_e), record.t_e)
            most[source] = max(most[source], newest[source] - record.t_e)
        return most


def draw_changelog(shape: LogShape, rng: np.random.Generator) -> ChangeLog:
    """Draw a change log.

    Args:
        shape: what it looks like.
        rng: where the randomness comes from.

    Returns:
        The log; its times are ints of a few seconds after the epoch, so that windows of some ms have edges to meet.
    """
    timed = [(at, arrival) for name in shape.sources for at, arrival in _drawn(name, shape, rng)]
    timed.sort(key=lambda one: one[0])
    replayed = round(shape.replayed * len(timed))
    arrivals = [
        arrival._replace(record=replace(arrival.record, origin="replay" if i < replayed else "live"))
        for i, (_, arrival) in enumerate(timed)
    ]
    return _cut(shape.sources, arrivals, shape.batches, rng)


def reorder(log: ChangeLog, rng: np.random.Generator) -> ChangeLog:
    """Return the same records in another order and other micro-batches: another arrival of the same relations.

    Args:
        log: whose records these are.
        rng: where the randomness comes from.
    """
    arrivals = log.arrivals
    times = sorted(arrival.record.t_i for arrival in arrivals)
    shuffled = [
        arrival._replace(record=replace(arrival.record, t_i=t_i))
        for arrival, t_i in zip((arrivals[i] for i in rng.permutation(len(arrivals)).tolist()), times, strict=True)
    ]
    return _cut(log.sources, shuffled, int(rng.integers(1, 2 * len(log.batches) + 1)), rng)


def _drawn(source: str, shape: LogShape, rng: np.random.Generator) -> list[tuple[int, Arrival]]:
    """The records of a source, each with its time of arrival."""
    many = shape.records
    keys = rng.choice(shape.keys, many, p=zipf(shape.keys, shape.skew)).tolist()
    values = rng.integers(0, shape.values, many).tolist()
    happened = np.cumsum(rng.exponential(shape.gap_ms, many)).astype(int)
    delay = np.minimum(shape.disorder_ms * rng.lognormal(0.0, 1.0, many), 10 * shape.disorder_ms)
    came = happened + np.where(rng.random(many) < shape.disordered, delay, 0.0).astype(int)
    gone = came + rng.exponential(shape.retract_ms, many).astype(int) + 1
    retracted, early, orphaned = (rng.random(many) < share for share in (shape.retracted, shape.early, shape.orphaned))
    first, last = np.where(early, gone, came).tolist(), np.where(early, came, gone).tolist()
    found: list[tuple[int, Arrival]] = []
    for i, (k, v, t_e) in enumerate(zip(keys, values, happened.tolist(), strict=True)):
        inserted = first[i] if retracted[i] else int(came[i])
        if not (retracted[i] and orphaned[i]):
            found.append((inserted, Arrival(source, SignedRecord(k, v, t_e, inserted), k % shape.partitions)))
        if retracted[i]:
            found.append((last[i], Arrival(source, SignedRecord(k, v, t_e, last[i], -1), k % shape.partitions)))
    return found


def _cut(sources: tuple[str, ...], arrivals: list[Arrival], batches: int, rng: np.random.Generator) -> ChangeLog:
    edges = [0, *sorted(rng.integers(0, len(arrivals) + 1, batches - 1).tolist()), len(arrivals)]
    cut, now = [], 0
    for begin, end in pairwise(edges):
        part = tuple(arrivals[begin:end])
        now = max([now, *(arrival.record.t_i for arrival in part)])
        cut.append(MicroBatch(now, part))
    return ChangeLog(sources, tuple(cut))
