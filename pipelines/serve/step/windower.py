"""Seconds of metrics become windows of a model's step: each is closed once, by the first record that reaches its end.

The same accumulator as in training and in the streaming server does the sums. What is beside it: a record that covers
time already covered changes nothing, so that a second heard by socket and again from Kafka counts once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from models.forecast.core.series import MAX_STEPS, Accumulator, Partial, SeriesError
from pipelines.serve.step.keys import window_of
from tidecast.messages import MetricSample

HOLE_S = 7 * 86_400.0
"""Job seconds without records after which the next one is still believed."""
AGREE = 10
"""Records in a row that must follow each other before a longer leap is taken for the job's new time."""
_GRAIN_S = 1e-6  # float times of today are good to a quarter of this


class Window(NamedTuple):
    """A closed window.

    Attributes:
        version: its index since the epoch.
        rate: mean arrivals, records/s.
        lag: records not yet processed at its end; None where nobody reported it.
        busy_s: wall seconds that batches took since the window before was closed.
    """

    version: int
    rate: float
    lag: int | None
    busy_s: float


class Filling(msgspec.Struct, frozen=True, array_like=True):
    """What is known of the window in progress; small, kept with the cursor in the same transaction.

    Attributes:
        step, weight, total, carried: as in `models.forecast.core.series.Partial`.
        until: job time up to which records have been taken, seconds since the epoch.
        busy_s: as in `Window`, so far.
        step_s: seconds per window; 0 before any.
        wall: when the newest of them was measured; 0 where nobody knows.
        astray: records in a row that lie further ahead than can be believed, and where the last of them ends.
    """

    step: int | None = None
    weight: float = 0.0
    total: float = 0.0
    carried: tuple[tuple[float, float, float], ...] = ()
    until: float = -math.inf
    busy_s: float = 0.0
    step_s: float = 0.0
    wall: float = 0.0
    astray: tuple[int, float] = (0, 0.0)


class Filled(NamedTuple):
    """What one record did.

    Attributes:
        filling: the window in progress after it.
        closed: windows that it closed, oldest first; those of which too little was seen are left out.
        again: the window that the record covers alone and whole, if its time was over already: it may be compared
            with what was closed then.
        late: whether the record was left out, because its time was over.
        why: why the record is refused; empty where it is not.
    """

    filling: Filling
    closed: list[Window]
    again: Window | None = None
    late: bool = False
    why: str = ""


def fill(filling: Filling, sample: MetricSample, step_s: float) -> Filled:
    """Count one metrics record of a job into its windows of `step_s` seconds of job time; changes nothing in place.

    A record of a batch only adds its seconds to `busy_s`. One that begins before what was already taken is left out
    (`late`). One further ahead than a hole can be is refused (`why`) until `AGREE` in a row follow each other; after
    more than `MAX_STEPS` missing windows the sums begin anew.

    Returns:
        The window in progress after the record, and the windows it closed; see `Filled`. Windows of which less than
        half was seen are not among them.

    Raises:
        SeriesError: the record spans more than a million windows, its span is not above 0, or a sum is not finite.
    """
    if sample.kind == "batch":
        busy = filling.busy_s + (sample.batch_s or 0.0)
        return Filled(msgspec.structs.replace(filling, busy_s=busy), [])
    begin, span, rate = sample.time, sample.span_s, sample.arrival_rps or 0.0
    if begin < filling.until - _GRAIN_S:
        return Filled(filling, [], _alone(sample, step_s), True)
    gap = begin - filling.until
    if math.isfinite(gap) and gap > (believed := _believed(filling, sample)):
        count, end = filling.astray
        count = count + 1 if count and -_GRAIN_S <= begin - end <= believed else 1
        if count < AGREE:
            why = f"time={begin} is {gap:.0f} s after the job's last record; believed once {AGREE} in a row agree"
            return Filled(msgspec.structs.replace(filling, astray=(count, begin + span)), [], why=why)
    begins = math.isfinite(gap) and gap > MAX_STEPS * step_s  # steps that nobody could step through
    before = Partial() if begins else Partial(filling.step, filling.weight, filling.total, filling.carried)
    partial, completed = Accumulator(step_s).push(before, begin, rate, span)
    if math.isinf(partial.total) or any(math.isinf(value) for _, value in completed):
        # Kept, an infinite window would fail every model that is begun on a history with it.
        raise SeriesError(f"arrival_rps={rate}: with a span of {span} s the sum of a window is no finite number")
    closed: list[Window] = []
    busy = filling.busy_s
    for start, value in completed:
        if not math.isnan(value):
            closed.append(Window(window_of(start, step_s), value, sample.lag_records, busy))
            busy = 0.0
    until, wall = begin + span, sample.wall_time
    return Filled(
        Filling(partial.step, partial.weight, partial.total, partial.carried, until, busy, step_s, wall), closed
    )


def _believed(filling: Filling, sample: MetricSample) -> float:
    """Job seconds without a record after which one may follow: a hole in a history, or the time the job was off."""
    return HOLE_S + max(sample.wall_time - filling.wall, 0.0) * sample.time_scale


def _alone(sample: MetricSample, step_s: float) -> Window | None:
    version = window_of(sample.time, step_s)
    aligned = abs(version * step_s - sample.time) <= _GRAIN_S and abs(sample.span_s - step_s) <= _GRAIN_S
    return Window(version, sample.arrival_rps or 0.0, sample.lag_records, 0.0) if aligned else None
