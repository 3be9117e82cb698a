"""The series in `pipelines/traces/data`, each at the steps at which forecasters are compared on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.forecast.core.series import Series, SeriesError
from pipelines.traces.series_file import format_step, parse_step, read_series
from pipelines.traces.trace import TRACES

_PUBLISHED = tuple(
    (name, f"{name}_{step}.csv.gz", "rescaled events", (step,))
    for name in ("iot", "taxi", "wiki_en", "google", "alibaba")
    for step in ("5min", "15min", "1h")
)
_SERIES = (
    *_PUBLISHED,
    ("nyc_taxi", "nyc_taxi.csv", "passengers per 30 min", ("30min",)),
    ("twitter_aapl", "twitter_aapl.csv", "mentions per 5 min", ("5min", "15min", "1h")),
    ("twitter_goog", "twitter_goog.csv.gz", "mentions per 5 min", ("5min", "15min", "1h")),
    ("twitter_fb", "twitter_fb.csv.gz", "mentions per 5 min", ("5min", "15min", "1h")),
    ("elb", "elb_request_count.csv", "requests per 5 min", ("5min", "15min")),
    ("green_taxi", "green_taxi.csv.gz", "trips per min", ("5min", "1h")),
)
"""Name, file, unit and steps."""


@dataclass(frozen=True)
class ShippedSeries:
    """A series that lies in this repository, at one of its steps.

    Attributes:
        name: of the series, e.g. "iot".
        step_s: seconds per step.
        unit: of its values, e.g. "requests per 5 min"; a longer step than the file's holds their mean, in this unit.
        path: of its file.
    """

    name: str
    step_s: float
    unit: str
    path: Path

    @property
    def label(self) -> str:
        """Name and step, e.g. "iot 5min"."""
        return f"{self.name} {format_step(self.step_s)}"

    def series(self) -> Series:
        """Read the series from its file; NaN where a step is missing.

        Raises:
            TraceError, SeriesError: the file is gone or damaged, see `series_file.read_series`.
        """
        return read_series(self.path, self.step_s)


def list_shipped() -> list[ShippedSeries]:
    """List every shipped series at each of its steps, in the order in which comparisons show them."""
    return [
        ShippedSeries(name, parse_step(step), unit, TRACES / file)
        for name, file, unit, steps in _SERIES
        for step in steps
    ]


def find_shipped(label: str) -> ShippedSeries:
    """Look up a shipped series by its name and step, e.g. "iot 5min"; its file is not read.

    Raises:
        SeriesError: there is none of that name; the message lists all.
    """
    by_label = {series.label: series for series in list_shipped()}
    if label not in by_label:
        raise SeriesError(f"{label!r} is no shipped series. There are: {', '.join(by_label)}.")
    return by_label[label]
