"""A fault that a backfill corrects: a source was cut off for an hour of the live day, and sent it when it was back."""

from __future__ import annotations

import math

from configs.errors import SettingsError
from configs.sections import Replay
from pipelines.jobs.windows import WINDOW_MS, watermark_delay_ms
from pipelines.traces.trace import live_start

HOUR_S = 3600
MARGIN_S = 20.0
"""Wall seconds beyond the watermark: Spark drops by the one of two batches before, and those may be full ones."""


def withheld_hour(replay: Replay) -> tuple[float, float] | None:
    """Return begin and end of the hour of which records are withheld, epoch seconds of trace time; None: of none.

    It is the first whole hour after a quarter of the live day, so that all that is withheld comes within the day.

    Args:
        replay: `withheld_share`, `live_start`, `live_hours`, and what `back_s` reads.

    Raises:
        TraceError: `live_start` is no time.
        SettingsError: the live day is too short for it.
    """
    if not replay.withheld_share:
        return None
    start = live_start(replay)
    begin = math.ceil((start + replay.live_hours * HOUR_S / 4) / HOUR_S) * HOUR_S
    hours = (begin + HOUR_S + back_s(replay) * replay.speed - start) / HOUR_S
    if hours > replay.live_hours:
        raise SettingsError(
            f"replay.withheld_share={replay.withheld_share:g}: what is withheld would come until {hours:.1f} h "
            f"after the live start, but live_hours is {replay.live_hours:g}. Give more hours, a smaller speed, or 0."
        )
    return float(begin), float(begin + HOUR_S)


def back_s(replay: Replay) -> float:
    """Return how much later than it happened a withheld record is sent, wall seconds: its window is final by then.

    A backfill's range has to reach as far beyond the end of the hour (`--late-s`, a little more).
    """
    return (WINDOW_MS + watermark_delay_ms(replay)) / 1000 / replay.speed + MARGIN_S
