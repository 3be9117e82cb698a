"""A load trace's CSV file, read row by row: every fault names the file, the row, the value seen and the remedy."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from configs.errors import CorrectableError

_SEPARATORS = ",;|\t"
_LAST = 1e11  # epoch seconds; what lies beyond are milliseconds


class TraceError(CorrectableError, ValueError):
    """A trace that cannot be replayed; the message names file, row, value seen and remedy."""


class Options(NamedTuple):
    """What messages call the settings or options that name the file, its columns and its time zone."""

    file: str = "replay.trace"
    time: str = "replay.time_column"
    value: str = "replay.value_column"
    zone: str = "replay.timezone"


REPLAY = Options()


class TraceRow(NamedTuple):
    """One row of a file.

    Attributes:
        line: its number in the file, the header being 1.
        time: epoch seconds.
        written: the time as written.
        value: of the load; NaN for an empty cell.
    """

    line: int
    time: float
    written: str
    value: float


def read_rows(
    path: Path, time_column: str, value_column: str, timezone: str, options: Options = REPLAY
) -> list[TraceRow]:
    """Read every row of a CSV file, plain or gzipped (`.gz`), in the file's order; times rise strictly.

    Times are ISO 8601 or epoch seconds (below 10¹¹); one without an offset is taken in `timezone`. Where clocks are set
    back, the second occurrence of an hour is recognised by its place in the file. A row that repeats the time and value
    of the row before it is left out, and so is a blank line. The separator (comma, semicolon, bar or tab) is found in
    the header.

    Args:
        path: of the file, in UTF-8.
        time_column: its name in the header.
        value_column: likewise.
        timezone: IANA name, e.g. Europe/Berlin.
        options: what messages call the settings to change.

    Returns:
        At least two rows: line in the file (header: 1), time (epoch seconds), time as written, value (NaN: empty cell).

    Raises:
        TraceError: no such file, column or time zone; the file cannot be read, is no UTF-8 or damaged, or has fewer
            than two rows; a row with too many or too few cells; a time that is none, or does not exist in the zone; a
            value that is no number, negative or infinite; times that fall, or two values for one time.
    """
    zone = _zone(path, timezone, options)
    rows: list[TraceRow] = []
    for line, written, cell in _cells(path, time_column, value_column, options):
        try:
            value = _value(value_column, cell)
            time = _time(written, zone, rows[-1].time if rows else -math.inf, options)
        except (ValueError, OverflowError) as error:
            raise TraceError(f"{path}, row {line}: {error}") from None
        row = TraceRow(line, time, written, value)
        if not rows or time > rows[-1].time:
            rows.append(row)
        elif time < rows[-1].time or not np.array_equal(value, rows[-1].value, equal_nan=True):
            # A file of local times looks doubled or unordered where its clock was set back.
            zoned = f", or, if its clock was set back here, name its zone in {options.zone}"
            wrong = _misplaced(rows[-1], row, time_column)
            raise TraceError(f"{path}, {wrong}{zoned if timezone == 'UTC' else ''}.")
    if len(rows) < 2:
        found = "one row" if rows else "no rows"
        raise TraceError(f"{path}: {found} under the header. A trace needs at least two, one step apart.")
    return rows


def read_header(path: Path, options: Options = REPLAY) -> list[str]:
    """Read the names of the file's columns, without blanks around them.

    Raises:
        TraceError: no such file, an empty one, or none in UTF-8.
    """
    with _reading(path, options) as file:
        return _header(path, file)[0]


def _misplaced(before: TraceRow, row: TraceRow, time_column: str) -> str:
    if row.time < before.time:
        place = f"row {row.line}: time {row.written!r} lies before {before.written!r} of row {before.line}"
        return f"{place}. Sort the file by {time_column!r}"
    place = f"rows {before.line} and {row.line}: time {row.written!r} twice"
    return f"{place}, with the values {before.value:g} and {row.value:g}. Keep one of them"


def _header(path: Path, file: IO[str]) -> tuple[list[str], str]:
    """The columns' names and the separator, by the line the file is about to read."""
    line = file.readline()
    if not line.strip():
        raise TraceError(f"{path}: the file is empty, instead of a header and rows of times and values.")
    separator = max(_SEPARATORS, key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=separator))], separator


@contextmanager
def _reading(path: Path, options: Options) -> Iterator[IO[str]]:
    if path.suffix == ".parquet":
        raise TraceError(
            f"{path}: CSV is expected, not Parquet. `pandas.read_parquet(FILE).to_csv(NEW, index=False)` writes it so."
        )
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8-sig") as file:
            yield cast(IO[str], file)
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file. Set {options.file} to a CSV file.") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read as CSV in UTF-8: {error}. Save it so.") from None


def _cells(path: Path, time_column: str, value_column: str, options: Options) -> Iterator[tuple[int, str, str]]:
    with _reading(path, options) as file:
        names, separator = _header(path, file)
        for column in (time_column, value_column):
            if column not in names:
                raise TraceError(
                    f"{path}, row 1: no column {column!r} among {', '.join(map(repr, names))}. "
                    f"Set {options.time} and {options.value}."
                )
        reader = csv.reader(file, delimiter=separator)
        for cells in reader:
            line = reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                found = f"{len(cells)} cells {cells!r}, {len(names)} are expected"
                raise TraceError(f"{path}, row {line}: {found}. Correct the row.")
            yield line, cells[names.index(time_column)].strip(), cells[names.index(value_column)].strip()


def _value(column: str, cell: str) -> float:
    """The cell's number, NaN where it is empty; ValueError says what is wrong with another."""
    if not cell:
        return math.nan
    value = _number(cell)
    if value is None:
        raise ValueError(f"{column}={cell!r} is not a number. Correct it, or leave the cell empty.")
    if not math.isfinite(value):
        raise ValueError(f"{column}={cell}; a finite number is expected. A missing value is an empty cell.")
    if value < 0:
        raise ValueError(f"{column}={cell}; a load is 0 or more. Correct it.")
    return value


def _time(written: str, zone: ZoneInfo, before: float, options: Options) -> float:
    """Epoch seconds; `before` is the time of the row before, by which the second of two equal local hours is known."""
    number = None if len(written) == 8 and written.isdigit() else _number(written)  # eight digits are a date
    if number is not None and abs(number) < _LAST:
        return number
    try:
        moment = datetime.fromisoformat(written if number is None else "")  # no milliseconds, and no infinity
    except ValueError:
        expected = "neither ISO 8601 (2014-10-22 04:00:00) nor epoch seconds"
        raise ValueError(f"time {written!r} is {expected}. Correct it.") from None
    if moment.tzinfo is not None:
        return moment.timestamp()
    if zone.key == "UTC":  # where no clock is set, and most files are
        return moment.replace(tzinfo=UTC).timestamp()
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment:
        raise ValueError(
            f"time {written!r} does not exist in {zone.key}, where clocks were set forward. "
            f"If the file's times lie on a regular grid, set {options.zone} to UTC."
        )
    # The same wall time again, or an earlier one, is the hour after clocks were set back.
    return second.timestamp() if first.timestamp() <= before < second.timestamp() else first.timestamp()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _zone(path: Path, name: str, options: Options) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TraceError(
            f"{path}: {options.zone}={name!r} is not a time zone. Name one such as UTC or Europe/Berlin."
        ) from None
