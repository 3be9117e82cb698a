"""A series from any CSV file with columns of times and values; a fault names file, row, value and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from models.forecast.core.series import COVERED, Floats, Series, SeriesError
from pipelines.traces.trace import place_on_grid
from pipelines.traces.trace_file import Options, read_header, read_rows

OPTIONS = Options("FILE", "--time-column", "--value-column", "--timezone")
_TIMES = ("timestamp", "time", "datetime", "date", "ts", "ds")
_VALUES = ("value", "values", "count", "messages", "requests", "load", "rate", "y")
_UNITS_S = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "hour": 3600.0}
_GRAIN = 1e-6  # of a step: rounding that a quotient of two lengths may carry
_MOST_S = 43_200.0


def read_series(
    path: Path,
    step_s: float | None = None,
    time_column: str | None = None,
    value_column: str | None = None,
    timezone: str = "UTC",
) -> Series:
    """Read a CSV file (plain or gzipped) as a regular series, at its own step or resampled to a multiple of it.

    The file's own step is the median spacing of its rows, in seconds. A longer step is the mean of the file's steps in
    it, NaN where fewer than half of them are known. Longer steps begin at multiples of `step_s` since the epoch, or at
    the row next to one.

    Args:
        path: of the file.
        step_s: seconds per step; None for the file's own step.
        time_column: None to find it by its usual names, such as `timestamp`, else the first column.
        value_column: None for the only other column, else found by its usual names, such as `value`.
        timezone: IANA name in which times without an offset are read, so that clock changes neither double nor skip.

    Returns:
        The series: `start` (epoch s), `step_s` and values (N,), which keep the file's unit, whatever it is, with NaN
        where a step is missing; the first and the last are known.

    Raises:
        TraceError: the file cannot be read; a row with a wrong time or a negative value, a wrong column or time zone,
            see `trace_file.read_rows`; a row lies over 1 % of a step off the regular ones; a gap of over 10⁶ steps.
        SeriesError: the value column cannot be guessed; the step is no multiple of the file's or over 12 hours; every
            value or, of longer steps, more than half of each is missing; or all are equal.
    """
    time_column, value_column = _columns(path, time_column, value_column)
    rows = read_rows(path, time_column, value_column, timezone, OPTIONS)
    times, values, file_step_s = place_on_grid(path, rows)
    if not np.isfinite(values).any():
        raise SeriesError(
            f"{path}: every one of {len(rows)} values in {value_column!r} is missing. Name another column."
        )
    start, wanted_step_s = float(times[0]), file_step_s if step_s is None else step_s
    if abs(wanted_step_s / file_step_s - 1) > _GRAIN:
        start, values = _resampled(path, start, values, file_step_s, wanted_step_s)
    if wanted_step_s > _MOST_S:
        raise SeriesError(
            f"{path}: steps of {wanted_step_s:g} s; at most {_MOST_S:g} s can be forecast. Use a finer file."
        )
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        raise SeriesError(f"{path}: no step of {wanted_step_s:g} s is half known. Choose another --step.")
    if np.ptp(values[known]) == 0:
        raise SeriesError(
            f"{path}: every value is {values[known[0]]:g}: there is nothing to forecast. Check {value_column!r}."
        )
    return Series(start + int(known[0]) * wanted_step_s, wanted_step_s, values[known[0] : known[-1] + 1])


def parse_step(text: str) -> float:
    """Parse a length of time such as 300, 30s, 5min or 1h into seconds, always above 0.

    Raises:
        SeriesError: the text is no such length; the message names it.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not match or match[2] not in _UNITS_S or not float(match[1]) > 0:
        raise SeriesError(f"step {text!r} is no length of time. Write 30s, 5min or 1h.")
    return float(match[1]) * _UNITS_S[match[2]]


def format_step(step_s: float) -> str:
    """Format seconds per step in whole hours or minutes, else in seconds: 300 is "5min", 3600 "1h", 90 "90s"."""
    for length, unit in ((3600, "h"), (60, "min")):
        if step_s >= length and step_s % length == 0:
            return f"{step_s / length:g}{unit}"
    return f"{step_s:g}s"


def _columns(path: Path, time_column: str | None, value_column: str | None) -> tuple[str, str]:
    """Names of the columns to read: as given, else by their usual names, else the only ones there are."""
    names = read_header(path, OPTIONS)
    if time_column is None:
        usual = [name for name in names if name.lower() in _TIMES] or [n for n in names if "time" in n.lower()]
        time_column = usual[0] if usual else names[0]
    others = [name for name in names if name != time_column]
    if value_column is None:
        usual = others if len(others) == 1 else [name for name in others if name.lower() in _VALUES]
        if len(usual) != 1:
            listed = ", ".join(map(repr, names))
            raise SeriesError(f"{path}, row 1: {listed}: which column holds the load? Name it with {OPTIONS.value}.")
        value_column = usual[0]
    return time_column, value_column


def _resampled(path: Path, start: float, values: Floats, file_step_s: float, step_s: float) -> tuple[float, Floats]:
    """Begin and means of longer steps."""
    factor = round(step_s / file_step_s)
    if factor < 1 or abs(factor * file_step_s / step_s - 1) > _GRAIN:
        raise SeriesError(
            f"{path}: steps of {step_s:g} s cannot be made of the file's own, {file_step_s:g} s. "
            f"Choose --step {format_step(file_step_s)} or a multiple of it."
        )
    lead = round((start - start % file_step_s) / file_step_s) % factor  # steps that the first longer one lacks
    rest = -(lead + len(values)) % factor
    padded = np.pad(values, (lead, rest), constant_values=np.nan).reshape(-1, factor)
    counts = np.isfinite(padded).sum(axis=1)
    means = np.where(counts >= COVERED * factor, np.nansum(padded, axis=1) / np.maximum(counts, 1), np.nan)
    return start - lead * file_step_s, means
