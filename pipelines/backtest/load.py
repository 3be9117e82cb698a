"""The traces of a backtest: a CSV file, or a shipped one by its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.forecast.core.series import Series, SeriesError
from models.twin.sim.arrivals import subtract_offset
from pipelines.traces.series_file import format_step, parse_step, read_series
from pipelines.traces.shipped import list_shipped

RESTORED = " restored"
"""Suffix of the name of a rescaled trace: takes off the offset that its publisher added."""
_STEPS_S = (300.0, 1800.0)


@dataclass(frozen=True, eq=False)
class NamedLoad:
    """A load with its name and the unit of its values ("" for a file's)."""

    name: str
    unit: str
    series: Series


def read_load(
    name_or_path: str,
    step: str | None = None,
    columns: tuple[str | None, str | None] = (None, None),
    timezone: str = "UTC",
) -> NamedLoad:
    """Read a load from a CSV file (plain or gzipped), or a shipped one by its name.

    Args:
        name_or_path: path of a file, or name of a shipped series, perhaps with its step: "google" or "google 5min"
            (without one, the finest). " restored" behind the name of a rescaled one takes off the offset that its
            publisher added.
        step: length of a step, e.g. 5min; a multiple of the file's own, and for a shipped series one of its steps.
        columns: names of a file's time and value column; None to find one by its usual names.
        timezone: IANA name, of a file's local times.

    Returns:
        The series, NaN where a step is missing, its name with the step of a shipped one, and its unit ("" for a
        file's).

    Raises:
        SeriesError: no such file or series, a step that it does not have, or a load that cannot be forecast.
        TraceError: the file cannot be read, or a row or column of it is wrong.
    """
    if Path(name_or_path).is_file():
        step_s = parse_step(step) if step else None
        return NamedLoad(Path(name_or_path).name, "", read_series(Path(name_or_path), step_s, *columns, timezone))
    name = name_or_path.removesuffix(RESTORED)
    cells = [cell for cell in list_shipped() if name in (cell.label, cell.name)]
    steps = ", ".join(format_step(cell.step_s) for cell in cells)
    if step:
        cells = [cell for cell in cells if cell.step_s == parse_step(step)]
    if steps and not cells:
        raise SeriesError(f"{name!r} is shipped in steps of {steps}, not of {step}. Choose one of these.")
    if not cells:
        known = ", ".join(dict.fromkeys(cell.name for cell in list_shipped()))
        raise SeriesError(f"{name_or_path!r} is neither a file nor a shipped series. Those are: {known}.")
    cell = min(cells, key=lambda cell: cell.step_s)
    series, label = cell.series(), f"{cell.name} {format_step(cell.step_s)}"
    if name != name_or_path:
        series, label = Series(series.start, series.step_s, subtract_offset(series.values)), label + RESTORED
    return NamedLoad(label, cell.unit, series)


def list_map_loads() -> list[str]:
    """Return the names, for `read_load`, of the shipped series of 5 and 30 min; rescaled ones also with " restored".

    Of a series with several steps only the finest is named.
    """
    names = []
    for cell in list_shipped():
        # Of a series with several steps the finest: the others are the same load with its bursts averaged away.
        if cell.step_s in _STEPS_S and not any(c.name == cell.name and c.step_s < cell.step_s for c in list_shipped()):
            names.append(cell.label)
            if "rescaled" in cell.unit:
                names.append(cell.label + RESTORED)
    return names
