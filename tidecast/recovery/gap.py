"""Which windows an outage leaves to a replay, where the live query goes on at the newest records without its state.

Three kinds of window change after the outage: those with records that came while the job was down, which the live query
never sees; those that were open when it begins again, of which it sees a part; and those of late records, likewise. All
of them end after the watermark that the job had come to, and begin before the moment at which it begins again. They are
the replay's. Every other window is final, or begins later and is live's alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tidecast.control import Clock
from tidecast.orders import ReplayOrder
from tidecast.recovery.checkpoint import Committed


@dataclass(frozen=True)
class GapSpan:
    """The event times of a gap, ms of the job's own time.

    Attributes:
        begin: of the first window that is computed again.
        end: of the last one.
        whole_from: the first moment of which the live query certainly sees all records.
        open_from: begin of the first window that it may tell a part of, but for records later than expected.
        final_s: wall time, epoch seconds, from which on no record of these windows is expected.
        absorbed: ids of earlier gaps that are not filled and of which this one takes over the range.
    """

    begin: int
    end: int
    whole_from: int
    open_from: int
    final_s: float
    absorbed: tuple[str, ...] = ()


def span_of(
    committed: Committed, oldest_s: float, now_s: float, window_ms: int, late_s: float | None, ahead_s: float,
    clock: Clock, gaps: Sequence[ReplayOrder] = (),
) -> GapSpan:  # fmt: skip
    """Return the windows that a gap leaves to a replay.

    Args:
        committed: how far the job had come.
        oldest_s: stamp of the oldest record that waits, wall epoch seconds.
        now_s: wall time, noted after the end of the gap.
        window_ms: length of the plan's windows.
        late_s: how late a record may be produced, wall seconds; None: as late as the job's watermark takes it.
        ahead_s: how far an event time may be ahead of `now_s`, wall seconds: clocks of producers differ.
        clock: of the job.
        gaps: earlier ones that are not filled.
    """
    oldest_ms = clock.at(oldest_s) * 1000
    if late_s is not None:
        first = clock.at(oldest_s - late_s) * 1000
    else:
        first = min(committed.watermark_ms, oldest_ms)
        late_s = max(committed.at_s - clock.wall_at(committed.watermark_ms / 1000), 0.0)
    begin = max(math.floor(first) - window_ms, 0)
    whole_from = math.floor(clock.at(now_s + ahead_s) * 1000) + 1
    end = whole_from + window_ms
    absorbed: list[str] = []
    for gap in sorted(gaps, key=lambda one: one.begin_ms or 0, reverse=True):
        if (gap.begin_ms or 0) < end and begin < (gap.end_ms or 0):
            begin = min(begin, gap.begin_ms or 0)
            absorbed.append(gap.id)
    open_from = max(math.floor(clock.at(now_s - late_s) * 1000) - window_ms, begin)
    return GapSpan(begin, end, whole_from, open_from, clock.wall_at(end / 1000) + late_s, tuple(absorbed))
