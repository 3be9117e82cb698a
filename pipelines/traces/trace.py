"""A load trace on a regular grid, cut into the history before a moment and the live load after it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from configs.sections import Replay
from models.forecast.core.series import MAX_STEPS
from pipelines.traces.trace_file import TraceError as TraceError
from pipelines.traces.trace_file import TraceRow, read_rows

Floats = NDArray[np.float64]
TRACES = Path(__file__).parent / "data"
PEAK_RPS = 90.0
"""Records/s at the highest value of a replayed load, where the settings state none."""
FILL_STEPS = 3
"""A gap of at most so many steps is filled by interpolation, and said so; a longer one cannot be replayed."""
_OFF_GRID = 0.01  # share of a step that a time may lie off its place


def highest_rps(replay: Replay) -> float:
    """Return the records per wall second at the highest value in use: `replay.peak_rps`, else PEAK_RPS."""
    return PEAK_RPS if replay.peak_rps is None else replay.peak_rps


@dataclass(frozen=True, eq=False)
class Trace:
    """A load at regular steps, and which part of it is replayed.

    Attributes:
        name: of the trace.
        times: (T,) epoch seconds at which each step begins.
        values: (T,) load of each step in the file's own unit; NaN only outside the part in use.
        step_s: trace seconds per step.
        history_start: epoch seconds at which the history begins; a step border.
        live_start: epoch seconds at which the live load begins.
        live_end: epoch seconds at which it ends.
        rps: records per wall second for one unit of `values`; the highest value in use becomes `highest_rps`.
        notes: what was filled, one sentence each.
    """

    name: str
    times: Floats
    values: Floats
    step_s: float
    history_start: float
    live_start: float
    live_end: float
    rps: float
    notes: tuple[str, ...]

    def history(self) -> tuple[Floats, Floats]:
        """Cut out the steps that end before the live load begins.

        Returns:
            (N,) epoch seconds at which each step begins, and (N,) records per wall second in it; both may be empty.
        """
        part = (self.times >= self.history_start) & (self.times + self.step_s <= self.live_start)
        return self.times[part], self.values[part] * self.rps

    def live(self) -> tuple[Floats, Floats]:
        """Cut out every step that the live load touches, also those it covers only in part.

        Returns:
            (N,) epoch seconds at which each step begins, and (N,) records per wall second in it.
        """
        part = (self.times + self.step_s > self.live_start) & (self.times < self.live_end)
        return self.times[part], self.values[part] * self.rps


def load_trace(replay: Replay) -> Trace:
    """Read the trace that the settings name and cut it into history and live load.

    Args:
        replay: `trace` is the name of a shipped trace (a CSV file in TRACES), or the path of a CSV file: with a slash
            in it, or ending in `.csv`. From `live_start` (ISO 8601, in `timezone` if it has no offset) `live_hours`
            trace hours are live; the history is the `history_days` days before.

    Returns:
        The trace, scaled so that the highest value in use is `highest_rps` records per wall second; gaps of at
        most FILL_STEPS (3) steps are interpolated linearly and named in its notes.

    Raises:
        TraceError: the file cannot be read; a wrong row, column or time zone, see `trace_file.read_rows`; irregular
            steps, see `place_on_grid`; `live_start` is no ISO 8601 time; the history or the live part reaches beyond
            the trace; in the part in use there is a longer gap, or every value is 0.
    """
    path = _path(replay.trace)
    rows = read_rows(path, replay.time_column, replay.value_column, replay.timezone)
    times, values, step_s = place_on_grid(path, rows)
    history_start, live_start, live_end = _window(path, replay, times, step_s)
    used = (times + step_s > history_start) & (times < live_end)
    values, notes = _filled(path, times, values, used)
    peak = float(values[used].max())
    if peak == 0:
        raise TraceError(
            f"{path}: every value between {_iso(history_start)} and {_iso(live_end)} is 0. Choose another part."
        )
    rps = highest_rps(replay) / peak
    return Trace(path.stem, times, values, step_s, history_start, live_start, live_end, rps, notes)


def load_past_trace(replay: Replay) -> Trace:
    """Load the trace as `load_trace` does, and check that its live load can be replayed: it must have ended by now.

    Raises:
        TraceError: as `load_trace`, or the live part ends in the future.
    """
    trace = load_trace(replay)
    if trace.live_end > time.time():
        raise TraceError(
            f"trace {trace.name!r}: the live part ends in the future, at {_iso(trace.live_end)}, and a job refuses "
            "events from there. Choose an earlier replay.live_start."
        )
    return trace


def _path(trace: str) -> Path:
    if "/" in trace or trace.endswith(".csv"):
        return Path(trace)
    path = TRACES / f"{trace}.csv"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in TRACES.glob("*.csv")))
        raise TraceError(f"replay.trace={trace!r}: no such trace. Known ones: {known}; or give the path of a CSV file.")
    return path


def place_on_grid(path: Path, rows: list[TraceRow]) -> tuple[Floats, Floats, float]:
    """Place rows at regular steps, as many as lie between the first row and the last.

    The step is the median distance between rows. Rows may lie 1 % of a step off their place, as seen from the one
    before.

    Args:
        path: of the file, for messages.
        rows: at least two, times rising, as `trace_file.read_rows` gives them.

    Returns:
        (T,) epoch seconds at which each step begins, (T,) values, NaN where there is no row or its cell is empty, and
        the seconds per step.

    Raises:
        TraceError, ValueError: a row between steps, or over MAX_STEPS (10⁶) after the one before; fewer than two rows.
    """
    strides_s = np.diff([row.time for row in rows])
    step_s = float(np.median(strides_s))
    # Each row is placed by its distance from the row before it, so that rounding in the file's times does not add up.
    whole = np.rint(strides_s / step_s).astype(np.int64)
    if (bad := (np.abs(strides_s / step_s - whole) > _OFF_GRID) | (whole < 1)).any():
        before, after = rows[int(np.argmax(bad))], rows[int(np.argmax(bad)) + 1]
        raise TraceError(
            f"{path}, row {after.line}: time {after.written!r} comes {after.time - before.time:g} s after row "
            f"{before.line}; the file's step is {step_s:g} s. Resample the file to one step."
        )
    if whole.max() > MAX_STEPS:
        after = rows[int(np.argmax(whole)) + 1]
        raise TraceError(
            f"{path}, row {after.line}: time {after.written!r} comes {whole.max()} steps of {step_s:g} s after the row "
            f"before it; at most {MAX_STEPS} are expected. Correct the time, or split the file."
        )
    places = np.concatenate([[0], np.cumsum(whole)])
    times = rows[0].time + step_s * np.arange(places[-1] + 1)
    values = np.full(len(times), math.nan)
    values[places] = [row.value for row in rows]
    return times, values, step_s


def live_start(replay: Replay) -> float:
    """Return when the live load begins, epoch seconds of trace time.

    Raises:
        TraceError: `live_start` is no ISO 8601 time.
    """
    try:
        start = datetime.fromisoformat(replay.live_start)
    except ValueError:
        raise TraceError(
            f"replay.live_start={replay.live_start!r} is not a time such as 2014-10-22T04:00:00."
        ) from None
    return (start if start.tzinfo else start.replace(tzinfo=ZoneInfo(replay.timezone))).timestamp()


def _window(path: Path, replay: Replay, times: Floats, step_s: float) -> tuple[float, float, float]:
    """History begin, live begin and live end, epoch seconds."""
    start = live_start(replay)
    live_end = start + replay.live_hours * 3600
    first, last = float(times[0]), float(times[-1] + step_s)
    if start < first or live_end > last:
        raise TraceError(
            f"{path}: the live part, {replay.live_hours:g} h from live_start={replay.live_start}, reaches beyond the "
            f"trace, which runs from {_iso(first)} to {_iso(last)}. Choose another live_start or fewer live_hours."
        )
    wanted = start - replay.history_days * 86_400
    if wanted < first - 1e-6:
        raise TraceError(
            f"{path}: replay.history_days={replay.history_days:g} reaches beyond the trace, which begins "
            f"{(start - first) / 86_400:.2f} days before live_start={replay.live_start}. "
            "Choose fewer days or a later live_start."
        )
    history_start = first + step_s * math.ceil((wanted - first) / step_s - 1e-6)
    return min(history_start, start), start, live_end


def _filled(path: Path, times: Floats, values: Floats, used: NDArray[np.bool_]) -> tuple[Floats, tuple[str, ...]]:
    """The values with short gaps interpolated, and a sentence for each gap in the part in use."""
    known = np.flatnonzero(np.isfinite(values))
    filled, notes = values.copy(), []
    gaps: list[slice] = np.ma.clump_masked(np.ma.masked_invalid(values))  # type: ignore[no-untyped-call]
    for gap in gaps:
        steps = gap.stop - gap.start
        where = f"{path}: {steps} missing step(s) from {_iso(times[gap.start])}"
        if steps <= FILL_STEPS and gap.start > 0 and gap.stop < len(values):
            filled[gap] = np.interp(np.arange(gap.start, gap.stop), known, values[known])
            if used[gap].any():
                notes.append(f"{where}, filled by interpolation.")
        elif used[gap].any():
            raise TraceError(
                f"{where}; at most {FILL_STEPS} in a row can be filled, and none at the ends. "
                "Complete the file, or choose live_start, live_hours and history_days so that they leave the gap out."
            )
    return filled, tuple(notes)


def _iso(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
