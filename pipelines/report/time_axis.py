"""The time axis of a run's charts: wall seconds since its start, and the trace time that they stand for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from pipelines.html.plot import Chart, stacked_rows
from pipelines.report.recorded.run import RecordedRun

_TICKS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)
_TICKS = 9


def time_layout(run: RecordedRun, until: float, titles: list[tuple[str, float]], since: float | None = None) -> Chart:
    """Return a Plotly layout of `stacked_rows` over one axis of wall seconds since the run's start, with trace times.

    Args:
        run: whose start and clock count.
        until: epoch seconds at which the axis ends.
        titles: (title with unit, share of the height) of each row, from the top; shares sum to 1.
        since: epoch seconds at which it begins; None: the run's start.

    Raises:
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    layout, begin, end = stacked_rows(titles), 0.0 if since is None else since - run.start, until - run.start
    step = next((t for t in _TICKS_S if (end - begin) / t <= _TICKS), _TICKS_S[-1])
    ticks = np.arange(np.ceil(begin / step) * step, end, step)
    words, day = [], ""
    for tick, moment in zip(ticks, trace_moments(run, ticks), strict=True):
        before, day = day, f"<br>{moment:%-d %b}"
        words.append(f"{tick:g} s<br>{moment:%H:%M}{day if day != before else ''}")
    layout["xaxis"] |= {"tickvals": ticks.tolist(), "ticktext": words, "range": [begin, end], "tickangle": 0}
    layout["xaxis"]["unifiedhovertitle"] = {"text": "%{x:.1f} s"}
    layout["margin"]["b"] = 62
    return layout


def trace_moments(run: RecordedRun, seconds: Any) -> list[datetime]:
    """Return the trace times, in the trace's own time zone, of wall seconds since the run's start.

    Raises:
        ZoneInfoNotFoundError: that zone is unknown here.
    """
    zone = ZoneInfo(run.info["replay"].get("timezone", "UTC"))
    return [datetime.fromtimestamp(run.clock.at(run.start + float(s)), UTC).astimezone(zone) for s in seconds]
