"""Seconds of metrics become windows of a model's step: each is closed once, by the first record that reaches its end.

The sums are those of training (`models.forecast.core.series.Accumulator`). A record that covers time already covered
changes nothing: a second that came by socket and again from Kafka counts once. Where a job's clock was
set back, its windows are numbered on, ahead of it: those that it shows again are closed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from models.forecast.core.gaps import LONGEST_GAP
from models.forecast.core.series import MAX_STEPS, Accumulator, Partial, SeriesError
from pipelines.serve.step.keys import window_of
from pipelines.serve.step.windows import FEWEST
from tidecast.messages import MetricSample

AGREEING_RECORDS = 10
"""Records in a row that must follow each other before a leap over more than `LONGEST_GAP` windows, after which the job
starts over anyway, is taken for its new time: believed at once, a single wrong one made all that follow too late."""
SET_BACK_S = 5.0
"""Seconds after a clock that was set back since at which the newest record was taken by it, at least."""
_GRAIN_S = 1e-6  # float times of today are good to a quarter of this


class Window(NamedTuple):
    """A closed window.

    Attributes:
        window_index: number of windows of its length since the epoch.
        rate: mean arrivals, records/s.
        lag: records not yet processed at its end; None where nobody reported it.
        busy_s: wall seconds that batches took since the window before was closed.
    """

    window_index: int
    rate: float
    lag: int | None
    busy_s: float


class OpenWindow(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a job's window in progress; small, kept with the cursor in the same transaction.

    Attributes:
        step, weight, total, carried: as in `models.forecast.core.series.Partial`.
        until: job time up to which records have been taken, `ahead_s` added, seconds since the epoch; -inf before any.
        busy_s: as in `Window`, so far.
        step_s: seconds per window; 0 before any.
        wall: wall time when the newest of them was measured, epoch seconds; 0 where nobody knows.
        too_far: (records in a row that lie further ahead than can be believed, job time at which the last of them
            ends).
        ahead_s: job seconds, a multiple of `step_s`, by which windows are ahead of the job's clock, which was set back.
        heard: wall time by which the newest of them was taken, or measured where that is earlier, epoch seconds.
    """

    step: int | None = None
    weight: float = 0.0
    total: float = 0.0
    carried: tuple[tuple[float, float, float], ...] = ()
    until: float = -math.inf
    busy_s: float = 0.0
    step_s: float = 0.0
    wall: float = 0.0
    too_far: tuple[int, float] = (0, 0.0)
    ahead_s: float = 0.0
    heard: float = 0.0


class SampleEffect(NamedTuple):
    """What one metrics record does to a job's windows.

    Attributes:
        open_window: the window in progress after it.
        closed: windows that it closed, oldest first.
        repeated: the window that a late record covers alone and whole, to be compared with what was closed then; None
            for any other record.
        late: whether the record was left out, because its time was over.
        refusal: why the record is refused; empty where it is not.
    """

    open_window: OpenWindow
    closed: list[Window]
    repeated: Window | None = None
    late: bool = False
    refusal: str = ""


def add_sample(open_window: OpenWindow, sample: MetricSample, step_s: float, now: float) -> SampleEffect:
    """Count one metrics record of a job into its windows of `step_s` seconds of job time; changes nothing in place.

    A record of a batch only adds its seconds to `busy_s`. One that begins before what was already taken is left out
    (`late`). One that begins over 24 windows (`LONGEST_GAP`), plus the wall time that passed in job seconds, after it
    is refused (`refusal`) until 10 in a row (`AGREEING_RECORDS`) follow each other. After more than a million missing
    windows the sums begin anew. `now` is wall time, epoch seconds: where the newest record was taken after it, the
    clock was set back, and the record follows that one, to half a window.

    Returns:
        The window in progress after the record, and the newest 2,880 (`FEWEST`) windows it closed, without those of
        which less than half was covered.

    Raises:
        SeriesError: the record spans more than a million windows, its span is not above 0, or a sum is not finite.
    """
    if sample.kind == "batch":
        busy_s = open_window.busy_s + (sample.batch_s or 0.0)
        return SampleEffect(msgspec.structs.replace(open_window, busy_s=busy_s), [])
    ahead_s = _ahead_s(open_window, sample, step_s, now)
    begin, span, rate = sample.time + ahead_s, sample.span_s, sample.arrival_rps or 0.0
    if begin < open_window.until - _GRAIN_S:
        return SampleEffect(open_window, [], _whole_window(sample, begin, step_s), late=True)
    gap = begin - open_window.until
    if math.isfinite(gap) and gap > (max_gap := _max_gap_s(open_window, sample, step_s)):
        count, end = open_window.too_far
        count = count + 1 if count and -_GRAIN_S <= begin - end <= max_gap else 1
        if count < AGREEING_RECORDS:
            refusal = (
                f"time={sample.time} is {gap:.0f} s after the job's last record; believed once {AGREEING_RECORDS} in a "
                "row agree"
            )
            counted = msgspec.structs.replace(open_window, too_far=(count, begin + span))
            return SampleEffect(counted, [], refusal=refusal)
    anew = math.isfinite(gap) and gap > MAX_STEPS * step_s  # steps that nobody could step through
    w = OpenWindow() if anew else open_window
    before = Partial(w.step, w.weight, w.total, w.carried)
    partial, completed = Accumulator(step_s).push(before, begin, rate, span)
    if math.isinf(partial.total) or any(math.isinf(value) for _, value in completed):
        # Kept, an infinite window would fail every model that is begun on a history with it.
        raise SeriesError(f"arrival_rps={rate}: with a span of {span} s the sum of a window is no finite number")
    closed: list[Window] = []
    busy_s = open_window.busy_s
    covered = [(start, value) for start, value in completed if not math.isnan(value)]
    for start, value in covered[-FEWEST:]:  # a step of the model for each; to take more would keep other jobs waiting
        closed.append(Window(window_of(start, step_s), value, sample.lag_records, busy_s))
        busy_s = 0.0
    after = OpenWindow(
        partial.step, partial.weight, partial.total, partial.carried, begin + span, busy_s, step_s, sample.wall_time,
        ahead_s=ahead_s, heard=min(sample.wall_time, now),
    )  # fmt: skip
    return SampleEffect(after, closed)


def _ahead_s(open_window: OpenWindow, sample: MetricSample, step_s: float, now: float) -> float:
    """Job seconds by which windows are ahead of a record's clock: more once that was set back, 0 once right again."""
    if open_window.ahead_s and sample.time >= open_window.until - step_s / 2:
        return 0.0
    # Not by `wall`: of a job whose clock is merely ahead, what comes again would seem to be of one that was set back.
    if open_window.heard <= now + SET_BACK_S or sample.wall_time > now + SET_BACK_S:
        return open_window.ahead_s
    fell_s = open_window.until - open_window.ahead_s - sample.time
    return open_window.ahead_s + max(round(fell_s / step_s), 0) * step_s


def _max_gap_s(open_window: OpenWindow, sample: MetricSample, step_s: float) -> float:
    """Job seconds without a record after which one may follow: a hole in a history, or the time the job was off."""
    return LONGEST_GAP * step_s + max(sample.wall_time - open_window.wall, 0.0) * sample.time_scale


def _whole_window(sample: MetricSample, begin: float, step_s: float) -> Window | None:
    """The window that a record covers alone and whole; None where it covers another span."""
    index = window_of(begin, step_s)
    aligned = abs(index * step_s - begin) <= _GRAIN_S and abs(sample.span_s - step_s) <= _GRAIN_S
    return Window(index, sample.arrival_rps or 0.0, sample.lag_records, 0.0) if aligned else None
