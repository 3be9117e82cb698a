"""A fault that a backfill corrects: a source was cut off for an hour of the live day, and sent it when it was back."""

from __future__ import annotations

import math

from configs.sections import Replay
from pipelines.jobs.windows import WINDOW_MS, watermark_delay_ms
from pipelines.traces.trace import live_start

HOUR_S = 3600
AFTER_S = 2 * HOUR_S
"""Trace seconds of the live day before it: in the main job's it is early, and what is read again is little."""
MARGIN_S = 20.0
"""Wall seconds beyond the watermark: Spark drops by the one of two batches before, and those may be full ones."""
ROOM_S = 30.0
"""Wall seconds of live load that have to be left for the backfill."""


def withheld_hour(replay: Replay) -> tuple[float, float] | None:
    """Return begin and end of the hour of which records are withheld, epoch seconds of trace time; None: none are.

    It is the first whole hour two hours after the live day has begun; a day that is too short for it withholds nothing.

    Args:
        replay: `withheld_share`, `live_start`, `live_hours`, and what `back_s` reads.

    Raises:
        TraceError: `live_start` is no time.
    """
    if not replay.withheld_share:
        return None
    start = live_start(replay)
    begin = math.ceil((start + AFTER_S) / HOUR_S) * HOUR_S
    if begin + HOUR_S + (back_s(replay) + ROOM_S) * replay.speed > start + replay.live_hours * HOUR_S:
        return None
    return float(begin), float(begin + HOUR_S)


def back_s(replay: Replay) -> float:
    """Return how much later than it happened a withheld record is sent, wall seconds: its window is final by then.

    A backfill's range has to reach as far beyond the end of the hour (`--late-s`, a little more).
    """
    return (WINDOW_MS + watermark_delay_ms(replay)) / 1000 / replay.speed + MARGIN_S
