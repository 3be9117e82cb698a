"""How high the load will rise before executors asked for now are of use, as quantiles that are kept.

Such a peak is regressed on where the load has just been and what the forecast says at several trusts in its newest
error. A second regression says how far off the first usually is at such a moment, and the quantiles of the past errors
in that unit are those of the peak (split conformal prediction, Vovk et al. 2005; scaled residuals, Lei et al. 2018).
Whether this serves better than the present rate alone, and in which units, is judged on the past too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats
from models.policy.received.nowcast import ForecastRows, correct_by_rate, correct_by_rate_for_each

LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995)
TRENDS_S = (30, 60, 120, 300, 900)
"""Seconds ago of the rates that the present one is compared with."""
MEMORIES = (0.25, 1.0, 4.0)
"""Forecast steps after which 1/e of an error is left; each gives features of its own."""
JUDGED = (0.9, 0.98, 0.995, 0.999)
"""Levels at which the loss with the forecast is compared with that of the present rate alone."""
_UPPER = 0.9
"""Level whose distance from the median is the width of a forecast."""
_CLEARLY = 0.9
"""The forecast median becomes the unit if the loss is below this share of that with the present rate as unit."""
_FEWEST = 100
"""Least moments for a regression."""
_LEAST_LEVEL = 0.02  # of the past's mean rate: the unit where the present rate is next to nothing
_WIDEST = 3.0  # units: a feature further out counts as this
_SMALLEST = 1e-3  # units: an error below it counts as this
_STIFF = 1e-4  # weight of the ridge penalty, as a share of the rows


def stretch_ends(lead_s: float, hold_s: float) -> Floats:
    """Return (2,) ends of the stretches whose peaks are forecast, seconds from now: `lead_s`, and `lead_s + hold_s`."""
    return np.array([lead_s, lead_s + hold_s])


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known at N moments.

    Attributes:
        curves: the N forecasts that were newest then.
        rate_now: (N,) records/s of the last seconds.
        trends: (N, len(TRENDS_S)) `rate_now` minus the rate so many seconds ago; NaN where unknown.
    """

    curves: ForecastRows
    rate_now: Floats
    trends: Floats

    def select(self, rows: NDArray[np.bool_]) -> Moments:
        """Return the moments that an (N,) mask selects."""
        c = self.curves
        curves = replace(c, quantiles=c.quantiles[rows], last=c.last[rows], age_s=c.age_s[rows])
        return Moments(curves, self.rate_now[rows], self.trends[rows])


@dataclass(frozen=True, eq=False)
class Line:
    """A linear function of the rows of a matrix.

    Attributes:
        weight: (F,) per column.
        bias: value at zero.
    """

    weight: Floats
    bias: float

    def __call__(self, rows: Floats) -> Floats:
        """Return (N,) values for (N, F) rows."""
        said: Floats = rows @ self.weight + self.bias
        return said


@dataclass(frozen=True, eq=False)
class Peaks:
    """A fitted forecast of the peak load in one stretch ahead. `fit_peaks` makes it.

    Attributes:
        centre: regression of the rise over the present rate, in units of `unit_rps`; None: the present rate alone.
        scale: regression of the logarithm of the error of `centre`; None with it.
        scores: (levels,) quantiles, at `LEVELS`, of (past rise minus centre) / scale.
        least: records/s, the smallest unit.
        foretold: whether the forecast median, where it is above the present rate, is the unit: before a load wakes up
            the present rate is next to nothing and a poor measure of the rise.
        offsets_s: (K,) seconds from now at which the forecast is read; the peak is that between first and last.
        gain: quantile loss on the past with the forecast over that with the present rate alone; 1 where that is used.
    """

    centre: Line | None
    scale: Line | None
    scores: Floats
    least: float
    offsets_s: Floats
    gain: float = 1.0
    foretold: bool = False

    def quantiles_rps(self, moments: Moments) -> Floats:
        """Return (N, 10) records/s, at least 0, that the peaks after N moments stay under, at levels 0.5 to 0.9995."""
        now, unit = moments.rate_now[:, None], self.unit_rps(moments)
        if self.centre is None or self.scale is None:
            return np.maximum(now + unit * self.scores, 0.0)
        rises, widths = _rows(moments, self.offsets_s, unit)
        off = np.exp(self.scale(widths))[:, None]
        return np.maximum(now + unit * (self.centre(rises)[:, None] + off * self.scores), 0.0)

    def unit_rps(self, moments: Moments) -> Floats:
        """Return (N, 1) records/s, the unit of a rise: the present rate, at least `least`.

        With `foretold` the highest forecast median over `offsets_s` where that is more.
        """
        known = np.maximum(moments.rate_now, self.least)
        if self.foretold:
            median = moments.curves.nearest_only(0.5)
            ahead = correct_by_rate(median, self.offsets_s, moments.rate_now, median.step_s)
            known = np.fmax(known, ahead[:, :, 0].max(axis=1))
        return known[:, None]


def fit_peaks(moments: Moments, offsets_s: Floats, peaks: Floats) -> Peaks:
    """Fit the forecast of peaks on past moments, in time order.

    Moments without a peak or a whole forecast are left out. From 200 on, regression on the forecast is tried in two
    units on the older half, judged by its quantile loss on the newer half, and kept (fitted to all) where that is below
    the loss of the present rate alone.

    Args:
        moments: N of the past, oldest first; curves.quantiles (N, H, Q), rate_now (N,) without NaN, trends (N, 5);
            records/s.
        offsets_s: (K,) seconds from now at which the forecast is read, rising.
        peaks: (N,) records/s, the highest rate between the first and the last offset; NaN where unknown.

    Returns:
        The fitted forecast; without any usable moment all its quantiles are the present rate.

    Raises:
        IndexError, ValueError: `peaks` or an array of the moments is not N long.
    """
    known = np.isfinite(peaks) & np.isfinite(moments.curves.quantiles).all(axis=(1, 2))
    moments, peaks = moments.select(known), peaks[known]
    least = _LEAST_LEVEL * float(np.mean(moments.rate_now)) + 1e-9 if len(peaks) else 1e-9
    nobody = Peaks(None, None, np.zeros(len(LEVELS)), least, offsets_s)
    if not len(peaks):
        return nobody
    half = len(peaks) // 2
    newer = np.arange(len(peaks)) >= half
    if half < _FEWEST:
        return _plain(nobody, moments, peaks)
    tried = (_plain, nobody), (_regressed, nobody), (_regressed, replace(nobody, foretold=True))
    losses = [
        _loss(fitted(one, moments.select(~newer), peaks[~newer]), peaks[newer], moments.select(newer))
        for fitted, one in tried
    ]
    gains = [float(np.mean(loss / np.maximum(losses[0], 1e-12))) for loss in losses]
    best = 2 if gains[2] < min(_CLEARLY * gains[1], 1.0) else 1 if gains[1] < 1 else 0
    fitted, one = tried[best]
    return replace(fitted(one, moments, peaks), gain=gains[best])


def _plain(nobody: Peaks, moments: Moments, peaks: Floats) -> Peaks:
    """By the present rate alone."""
    risen = (peaks - moments.rate_now) / nobody.unit_rps(moments)[:, 0]
    return replace(nobody, scores=np.quantile(risen, LEVELS))


def _regressed(nobody: Peaks, moments: Moments, peaks: Floats) -> Peaks:
    unit = nobody.unit_rps(moments)
    rises, widths = _rows(moments, nobody.offsets_s, unit)
    risen = (peaks - moments.rate_now) / unit[:, 0]
    usual = np.minimum(risen, np.quantile(risen, LEVELS[-2]))  # a rare jump must not bend the regression
    centre = _ridge(rises, usual)
    errors = risen - centre(rises)
    scale = _ridge(widths, np.log(np.abs(errors) + _SMALLEST))
    scores = np.quantile(errors / np.exp(scale(widths)), LEVELS)
    return replace(nobody, centre=centre, scale=scale, scores=scores)


def _rows(moments: Moments, offsets_s: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """What the rise is regressed on, (N, F), and what its error is, (N, G)."""
    now, memories = moments.rate_now[:, None], [memory * moments.curves.step_s for memory in MEMORIES]
    curves = moments.curves.nearest_only(0.5, _UPPER)
    ahead = correct_by_rate_for_each(curves, offsets_s, moments.rate_now, memories)
    said = [one[:, :, 0] for one in ahead]
    spread = [one[:, :, 1].max(axis=1) - one[:, :, 0].max(axis=1) for one in ahead]
    rises = [moments.trends, *(np.stack([one.max(axis=1), one[:, -1]], axis=1) - now for one in said)]
    moved = np.clip(np.nan_to_num(np.concatenate(rises, axis=1) / unit), -_WIDEST, _WIDEST)
    wide = np.nan_to_num(np.maximum(np.stack(spread, axis=1), 0.0) / unit)
    noise = 1 / np.sqrt(unit)
    widths = np.log(np.concatenate([np.abs(moved), wide, noise], axis=1) + _SMALLEST)
    return np.concatenate([moved, np.maximum(moved, 0.0)], axis=1), widths


def _ridge(rows: Floats, wanted: Floats) -> Line:
    """Least squares on standardised columns, with every squared weight as dear as `_STIFF` of the rows."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    even = (rows - mean) / spread
    products = even.T @ even / len(rows) + _STIFF * np.eye(rows.shape[1])
    weight = np.linalg.solve(products, even.T @ (wanted - wanted.mean()) / len(rows)) / spread
    return Line(weight, float(wanted.mean() - mean @ weight))


def _loss(one: Peaks, peaks: Floats, moments: Moments) -> Floats:
    """(JUDGED,) mean pinball losses."""
    above = peaks[:, None] - one.quantiles_rps(moments)[:, [LEVELS.index(level) for level in JUDGED]]
    losses: Floats = np.maximum(above * np.array(JUDGED), above * (np.array(JUDGED) - 1)).mean(axis=0)
    return losses
