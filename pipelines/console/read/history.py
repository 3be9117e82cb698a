"""The last hours of a job in bounded memory: points at a regular step, packed into bytes."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import NamedTuple

NAN = math.nan
GAP = 5
"""Steps without a point after which a line is interrupted."""


class Point(NamedTuple):
    """What is kept of a moment; NaN where it is not known.

    Attributes:
        arrival_rps: records/s that came; of several the mean.
        executors: that were there; the last one.
        target: executors that the newest decision asks for; the last one.
        capacity_rps: records/s that the executors sustained by the newest decision; the last one.
        lag_records: that waited; the most.
        latency_s: of the oldest record of a batch; the most.
    """

    arrival_rps: float = NAN
    executors: float = NAN
    target: float = NAN
    capacity_rps: float = NAN
    lag_records: float = NAN
    latency_s: float = NAN


_PACKED = struct.Struct(f"<d{len(Point._fields)}f")


@dataclass(frozen=True)
class PackedHistory:
    """Points at most `most` steps of `step_s` seconds back from the newest one, each the summary of its step.

    Older ones are kept, unseen, while they are among the newest `most`: a clock that jumped ahead may be set back.

    Attributes:
        step_s: seconds of a step, above 0.
        most: number of closed points that are kept, and of steps before the newest point whose points are shown.
        packed: closed points, oldest first: the beginning of the step (epoch seconds) and the point's fields.
        step: number of the step that is open; None before the first point.
        added: points in it.
        open: their summary.
    """

    step_s: float
    most: int
    packed: bytes = b""
    step: int | None = None
    added: int = 0
    open: Point = field(default_factory=Point)

    def add(self, at: float, point: Point) -> PackedHistory:
        """Return the history with a point at a wall time in epoch seconds; one before the open step is left out."""
        step = math.floor(at / self.step_s)
        if self.step is None or step > self.step:
            closed = (self.packed + self._pack())[-self.most * _PACKED.size :]
            return replace(self, packed=closed, step=step, added=1, open=point)
        if step < self.step:
            return self
        return replace(self, added=self.added + 1, open=_summary(self.open, self.added, point))

    def until(self, at: float) -> PackedHistory:
        """Return the history without the steps that end after a wall time in epoch seconds."""
        packed = self.packed + self._pack()
        kept = sum(begins + self.step_s <= at for begins, *_ in _PACKED.iter_unpack(packed))
        return PackedHistory(self.step_s, self.most, packed[: kept * _PACKED.size])

    @property
    def oldest(self) -> float | None:
        """Wall time at which the oldest point begins, epoch seconds; None before the first point."""
        points = self._points()
        return points[0][0] if points else None

    def columns(self, after: float = -math.inf) -> list[list[float | None]]:
        """Return the points of the steps that begin after a wall time (epoch seconds), a list per column, oldest first.

        The first column is the beginning of the step, the others are the fields of `Point`. Where more than `GAP` steps
        have none, a point of None alone stands between. All are returned where the newest one is before that time: who
        asks has seen it before the clock was set back.
        """
        if self.step is not None and self.step * self.step_s < after:
            after = -math.inf
        columns: list[list[float | None]] = [[] for _ in range(1 + len(Point._fields))]
        before = math.inf
        for at, *fields in self._points():
            if at > after:
                if at - before > GAP * self.step_s:
                    _append(columns, before + self.step_s, [NAN] * len(fields))
                _append(columns, at, fields)
                before = at
        return columns

    def _points(self) -> list[tuple[float, ...]]:
        points = list(_PACKED.iter_unpack(self.packed + self._pack()))
        return [point for point in points if point[0] >= points[-1][0] - self.most * self.step_s]

    def _pack(self) -> bytes:
        return b"" if self.step is None else _PACKED.pack(self.step * self.step_s, *self.open)


def _summary(before: Point, added: int, point: Point) -> Point:
    return Point(
        before.arrival_rps + (point.arrival_rps - before.arrival_rps) / (added + 1),
        *(old if math.isnan(new) else new for old, new in zip(before[1:4], point[1:4], strict=True)),
        *(_most(old, new) for old, new in zip(before[4:], point[4:], strict=True)),
    )


def _most(old: float, new: float) -> float:
    return new if math.isnan(old) else old if math.isnan(new) else max(old, new)


def _append(columns: list[list[float | None]], at: float, fields: list[float]) -> None:
    columns[0].append(at)
    for column, value in zip(columns[1:], fields, strict=True):
        column.append(None if math.isnan(value) else float(f"{value:.5g}"))
