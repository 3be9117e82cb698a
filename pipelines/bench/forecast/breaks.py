"""Shipped loads with a change of mean put into them, and the errors a forecaster makes on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from configs.bounds import DAY_S
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Floats, Series
from models.forecast.selection.backtest import forecast_origins
from pipelines.traces.shipped import find_shipped

CELLS = ("iot 5min", "taxi 5min", "wiki_en 5min", "google 5min", "alibaba 5min", "nyc_taxi 30min")
CHOSEN_ON = ("iot 5min", "google 5min", "nyc_taxi 30min")
"""The half of the cells on which the settings were chosen."""
WITHIN = 50
"""A change must be found within so many steps."""
STEPS = ("+30 %", "-30 %")
SHAPES = (*STEPS, "ramp to +30 %")
FIRST_DAYS = 3.0
"""Detectors say nothing before; it counts as not watched."""
_RAMP = 24  # steps until a ramp has reached its height
_MARGIN_DAYS = 0.5  # after the first days, before the first change
_AHEAD = 12  # steps ahead whose error is followed
# Five anomalies are labelled in nyc_taxi: the marathon, Thanksgiving, Christmas, New Year and a snow storm; these are
# the windows that NAB gives them (labels/combined_windows.json).
_LABELLED = {
    "nyc_taxi 30min": (
        ("2014-10-30 15:30", "2014-11-03 22:30"),
        ("2014-11-25 12:00", "2014-11-29 19:00"),
        ("2014-12-23 11:30", "2014-12-27 18:30"),
        ("2014-12-29 21:30", "2015-01-03 04:30"),
        ("2015-01-24 20:30", "2015-01-29 03:30"),
    )
}


@dataclass(frozen=True, eq=False)
class WatchedSeries:
    """A series and the stretches of it that do not count, because they hold labelled anomalies.

    Attributes:
        name: of the shipped series and its step, e.g. "iot 5min".
        series: in the file's own unit.
        left_out: (begin, end) of each labelled anomaly, epoch seconds.
    """

    name: str
    series: Series
    left_out: tuple[tuple[float, float], ...]

    def counts(self, time: float) -> bool:
        """Tell whether a moment (epoch seconds) lies outside the labelled anomalies."""
        return not any(begin <= time <= end for begin, end in self.left_out)

    @property
    def months(self) -> float:
        """Months of 30 days that were watched: without the first three days and the labelled anomalies."""
        left_out = sum(end - begin for begin, end in self.left_out)
        return (len(self.series) * self.series.step_s - left_out - FIRST_DAYS * DAY_S) / (30 * DAY_S)

    def draw_positions(self, count: int, seed: int) -> list[int]:
        """Draw steps at which a change may begin, after the first 3.5 days.

        Neither the step nor the end of the search for the change, 50 steps later, lies in a labelled anomaly.

        Args:
            count: of steps.
            seed: the same seed draws the same steps.

        Returns:
            Indices into the series, rising, each once; each has 50 steps or more from it to the end.
        """
        start, step_s = self.series.start, self.series.step_s
        steps = range(round((FIRST_DAYS + _MARGIN_DAYS) * DAY_S / step_s), len(self.series) - WITHIN)
        allowed = [at for at in steps if all(self.counts(start + (at + end) * step_s) for end in (0, WITHIN))]
        return sorted(np.random.default_rng(seed).choice(allowed, count, replace=False).tolist())


def read_watched(cell: str) -> WatchedSeries:
    """Read a shipped series, e.g. "iot 5min", with its labelled anomalies, if it has any.

    Raises:
        SeriesError: there is none of that name.
    """
    times = ([pd.Timestamp(text, tz="UTC").timestamp() for text in span] for span in _LABELLED.get(cell, ()))
    spans = tuple((begin, end) for begin, end in times)
    return WatchedSeries(cell, find_shipped(cell).series(), spans)


def change_mean(series: Series, at: int, shape: str) -> Series:
    """Copy a series with its mean changed from a step on; the copy ends WITHIN (50) steps after the change begins.

    Args:
        series: unchanged itself; missing steps (NaN) stay missing.
        at: index of the first changed step, 50 or more before the end.
        shape: one of SHAPES; any other name makes the ramp, which rises by 30 % over 24 steps.

    Raises:
        ValueError: fewer than 50 steps follow `at`.
    """
    values = series.values[: at + WITHIN].copy()
    rise = np.minimum(np.arange(1, WITHIN + 1) / _RAMP, 1.0)
    values[at:] *= {"+30 %": 1.3, "-30 %": 0.7}.get(shape, 1 + 0.3 * rise)
    return Series(series.start, series.step_s, values)


def log_errors(forecaster: Forecaster, series: Series) -> Series:
    """Compute log(load/forecast) at every step, of the median that was issued 12 steps before.

    NaN in the first 11 steps, where load or forecast is not above 0, and where a step is missing.

    Raises:
        SeriesError: the forecaster has other steps, or the series is empty.
        IndexError: the forecaster's horizon is under 12 steps.
    """
    empty, everything = series.split(len(series))
    return Series(series.start, series.step_s, _errors(forecaster, empty, everything))


def log_errors_after(forecaster: Forecaster, whole: Series, known: Series, at: int) -> Series:
    """Compute `log_errors` for a series that differs from one whose errors are known only from a step on.

    Args:
        forecaster: the one whose errors are known.
        whole: the changed series.
        known: errors of the unchanged series, at the same steps.
        at: index of the first changed step, at least 12.

    Raises:
        SeriesError, IndexError: see `log_errors`.
    """
    older, newer = whole.split(len(whole) - at + _AHEAD)
    rolled = _errors(forecaster, older, newer)[_AHEAD:]
    return Series(whole.start, whole.step_s, np.concatenate([known.values[:at], rolled]))


def _errors(forecaster: Forecaster, history: Series, held: Series) -> Floats:
    """(T,) errors on the held steps; those of the first `_AHEAD` − 1 are NaN, nothing was issued for them."""
    middle = int(np.argmin(np.abs(np.array(forecaster.levels) - 0.5)))
    issued = [made[_AHEAD - 1, middle] for made in forecast_origins(forecaster, history, held)]
    said = np.concatenate([np.full(_AHEAD - 1, np.nan), issued])[: len(held)]
    positive = (said > 0) & (held.values > 0)
    errors: Floats = np.log(np.divide(held.values, said, out=np.full(len(held), np.nan), where=positive))
    return errors
