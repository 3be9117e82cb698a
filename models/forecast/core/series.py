"""Regular series resampled from irregular records: as one batch, or record by record with the same result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.errors import CorrectableError

Floats = NDArray[np.float64]
Column = Sequence[float] | Floats
Steps = list[tuple[float, float]]

COVERED = 0.5
"""A step of which records cover a smaller share than this is missing (NaN)."""
MAX_STEPS = 1_000_000
"""A series or a gap of more steps than this raises SeriesError: a time or the step must be wrong."""
GRAIN = 1e-6
"""Tolerance for rounding of float epoch seconds at the border of a step, as a share of the step."""


class SeriesError(CorrectableError, ValueError):
    """Records or loads that make no valid series; the message names the value and the remedy."""


@dataclass(frozen=True, eq=False)
class Series:
    """A load at regular steps.

    Attributes:
        start: epoch seconds at which the first step begins.
        step_s: seconds per step.
        values: (T,) records/s, mean over the step; NaN where a step is missing.
    """

    start: float
    step_s: float
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    @property
    def end(self) -> float:
        """Epoch seconds at which the last step ends and the next begins."""
        return self.start + len(self.values) * self.step_s

    @property
    def digest(self) -> str:
        """16 hex digits by which series are told apart: equal ones have equal digests."""
        return hashlib.sha256(np.array([self.start, self.step_s]).tobytes() + self.values.tobytes()).hexdigest()[:16]

    def split(self, newest: int) -> tuple[Series, Series]:
        """Split off the newest `newest` steps; the first part is empty where there are no more than these."""
        cut = max(len(self.values) - newest, 0)
        older = Series(self.start, self.step_s, self.values[:cut])
        return older, Series(older.end, self.step_s, self.values[cut:])


@dataclass(frozen=True)
class Partial:
    """State of an `Accumulator` between two records.

    Attributes:
        step: index of the step in progress, counted from the epoch; None before the first record.
        weight: seconds of it that records covered so far.
        total: sum of value times seconds covered.
        carried: parts of records that reach beyond it, as (begin, end, value) in epoch seconds and records/s.
    """

    step: int | None = None
    weight: float = 0.0
    total: float = 0.0
    carried: tuple[tuple[float, float, float], ...] = ()


def resample(times: Column, values: Column, spans: Column, step_s: float) -> Series:
    """Average records, each of which covers `[time, time + span)`, over regular steps, weighted by the seconds covered.

    Steps begin at multiples of `step_s` since the epoch. Records may come in any order; seconds covered by two records
    count twice, in the mean and in the coverage.

    Args:
        times: (N,) epoch seconds at which a record's span begins.
        values: (N,) records/s.
        spans: (N,) seconds, above 0.
        step_s: seconds per step.

    Returns:
        From the step of the first record to the last step that lies before the latest end of a record; NaN where less
        than half of a step was covered. Of no records, an empty series that starts at 0.

    Raises:
        SeriesError: the columns differ in length, a number is not finite, a span or `step_s` is not above 0, or the
            times span more than 1,000,000 steps.
        ValueError: numpy's, where a column holds text that is no number.
    """
    t, v, s = (np.asarray(x, dtype=np.float64) for x in (times, values, spans))
    _check(t, v, s, step_s)
    if len(t) == 0:
        return Series(0.0, step_s, np.empty(0))
    first, until = _step_of(t, step_s), float((t + s).max())
    _complete(int(first.min()), until, step_s)  # checked before a very long record is cut into steps
    return average_pieces(*cut_records(t, v, s, step_s), until, step_s)


def cut_records(
    times: Floats, values: Floats, spans: Floats, step_s: float
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Cut records at the borders of steps; a record of over `MAX_STEPS` steps gives a piece of its first step only.

    Args:
        times: (N,) epoch seconds at which a record's span begins, finite.
        values: (N,) records/s.
        spans: (N,) seconds, above 0, finite.
        step_s: seconds per step, above 0.

    Returns:
        The pieces as `average_pieces` takes them: `steps`, `weights` and `totals`.
    """
    first, ends = _step_of(times, step_s), times + spans
    pieces = np.maximum(_step_of(ends, step_s, closing=True), first) - first + 1  # a record may straddle steps
    pieces[pieces > MAX_STEPS + 1] = 1
    record = np.repeat(np.arange(len(times)), pieces)
    step = np.repeat(first - (np.cumsum(pieces) - pieces), pieces) + np.arange(len(record))
    seen = np.minimum(ends[record], (step + 1) * step_s) - np.maximum(times[record], step * step_s)
    seen = np.maximum(seen, 0.0)
    return step, seen, seen * values[record]


def average_pieces(steps: NDArray[np.int64], weights: Floats, totals: Floats, until: float, step_s: float) -> Series:
    """Average pieces of records, none of which crosses a border of steps, to a series; the last part of `resample`.

    Args:
        steps: (N,) index since the epoch of the step that a piece lies in, in any order.
        weights: (N,) seconds of that step the piece covers; of another length numpy's IndexError, as for `totals`.
        totals: (N,) records/s times these seconds.
        until: latest end of a record, epoch seconds; a step that ends later is left out.
        step_s: seconds per step, above 0.

    Returns:
        From the first piece's step on; NaN where less than half of a step was covered. Without pieces, an empty series
        that starts at 0.

    Raises:
        SeriesError: the times span more than 1,000,000 steps.
    """
    if len(steps) == 0:
        return Series(0.0, step_s, np.empty(0))
    origin = int(steps.min())
    count = _complete(origin, until, step_s)
    kept = steps < origin + count
    weight, total = (np.bincount(steps[kept] - origin, each[kept], count) for each in (weights, totals))
    means = np.divide(total, weight, out=np.full(count, np.nan), where=weight >= COVERED * step_s)
    return Series(origin * step_s, step_s, means)


def _complete(origin: int, until: float, step_s: float) -> int:
    """Return how many steps from the origin on end by `until`.

    Raises:
        SeriesError: more than `MAX_STEPS`.
    """
    count = max(int(_step_of(until, step_s)) - origin, 0)
    if count > MAX_STEPS:
        raise SeriesError(
            f"the times span {count} steps of {step_s:g} s (at most {MAX_STEPS}). "
            "Look for a wrong time, or choose a longer step."
        )
    return count


@dataclass(frozen=True)
class Accumulator:
    """Streaming form of `resample`: records pushed in time order and without overlap give the same steps.

    Attributes:
        step_s: seconds per step.
    """

    step_s: float

    def push(self, state: Partial, time: float, value: float, span_s: float) -> tuple[Partial, Steps]:
        """Add one record that covers `[time, time + span_s)` and return the new state and the steps it completed.

        Args:
            state: after the record before; `Partial()` for the first one. It is not changed.
            time: epoch seconds, not before the end of the record before (not checked).
            value: records/s.
            span_s: seconds, above 0.

        Returns:
            The new state, and the steps that this record completed as (epoch seconds of the begin, records/s), oldest
            first; NaN for a step of which less than half was covered. Parts of the record in steps already completed
            are dropped.

        Raises:
            SeriesError: a number is not finite, `span_s` or `step_s` is not above 0, or the record ends more than
                1,000,000 steps after the step in progress.
        """
        if not (math.isfinite(time + value + span_s) and span_s > 0 and 0 < self.step_s < math.inf):
            _check(np.array([time]), np.array([value]), np.array([span_s]), self.step_s)
        end = time + span_s
        # As `_step_of`, without the arrays that cost more than the whole record.
        step = math.floor(time / self.step_s + GRAIN) if state.step is None else state.step
        complete = math.floor(end / self.step_s + GRAIN)
        if complete - step > MAX_STEPS:
            raise SeriesError(f"time={time}: {complete - step} steps after the last record. Look for a wrong clock.")
        if not state.weight and not state.carried and time == step * self.step_s and end == (step + 1) * self.step_s:
            # One whole step by itself, the usual record of a job that reports once a step: as below, at a fifth.
            return Partial(step + 1), [(time, (end - time) * value / (end - time))]
        weight, total = state.weight, state.total
        pieces = [*state.carried, (time, end, value)]
        completed: Steps = []
        while True:
            closes = (step + 1) * self.step_s
            for begin, until, amount in pieces:
                seen = max(min(until, closes) - max(begin, step * self.step_s), 0.0)
                weight, total = weight + seen, total + seen * amount
            rest = tuple((max(b, closes), u, a) for b, u, a in pieces if u > closes)
            if step >= complete:
                return Partial(step, weight, total, rest), completed
            enough = weight >= COVERED * self.step_s
            completed.append((step * self.step_s, total / weight if enough else math.nan))
            step, weight, total, pieces = step + 1, 0.0, 0.0, list(rest)


def _step_of(time: Floats | float, step_s: float, closing: bool = False) -> NDArray[np.int64]:
    """Index of the step that a time lies in; with `closing`, a time on a border belongs to the step before it."""
    position = np.asarray(time, dtype=np.float64) / step_s
    steps = np.ceil(position - GRAIN) - 1 if closing else np.floor(position + GRAIN)
    return steps.astype(np.int64)


def _check(times: Floats, values: Floats, spans: Floats, step_s: float) -> None:
    if not (math.isfinite(step_s) and step_s > 0):
        raise SeriesError(f"step_s={step_s}: a length above 0 s is expected")
    if not len(times) == len(values) == len(spans):
        raise SeriesError(f"{len(times)} times, {len(values)} values, {len(spans)} spans: as many of each are expected")
    for name, column in (("time", times), ("value", values), ("span", spans)):
        if (bad := ~np.isfinite(column)).any():
            row = int(np.argmax(bad))
            raise SeriesError(f"row {row}: {name}={column[row]}; a finite number is expected. Quarantine the record.")
    if (bad := spans <= 0).any():
        raise SeriesError(f"row {int(np.argmax(bad))}: span={spans[np.argmax(bad)]}; a length above 0 s is expected.")
