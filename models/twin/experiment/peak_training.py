"""Learn from a trace's past how its peaks are forecast, before policies are compared on what follows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from configs.contract import Planning
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.policy.core.capacity import Floats, Integers
from models.policy.received.nowcast import forecast_offsets
from models.policy.received.outlook import SMOOTH_S
from models.policy.received.peak_calibrator import PeakCalibrator
from models.policy.received.peaks import TRENDS_S, Moments, Peaks, fit_peaks
from models.twin.experiment.foresight import IssuedForecasts, issue_stepwise, rolling_maximum
from models.twin.sim.arrivals import PART, fill_gaps, rates_per_second

DAYS = 14.0
"""Newest days of a past that are learned from."""
EVERY_S = 60.0
"""Seconds between the moments learned from; longer where they would be more than `MOMENTS`."""
MOMENTS = 20_000  # most moments learned from
LEAST_S = 43_200.0
"""Least seconds of a past to learn from."""
UNFITTED = (Blend, NetworkedBlend, Naive)
"""Forecasters whose forecasts of a past are as uncertain as they would have been: not fitted to it, or silent there."""
STEPS = 20_000
"""Most steps of a forecaster that are learned from for a running job."""


def learn_peaks(
    said: IssuedForecasts, rate: Floats, begins_s: float, times_s: tuple[float, float], smooth_s: int, seed: int,
    many: int = MOMENTS, unknown: NDArray[np.bool_] | None = None,
) -> tuple[Peaks, ...] | None:  # fmt: skip
    """Learn to forecast the load's peak within the lead time, and within the hold after it, from a past.

    Args:
        said: forecasts of that past, records/s.
        rate: (T,) smooth records/s of every second of the past, without NaN; the newest 14 days are used.
        begins_s: epoch seconds of its first second.
        times_s: seconds of lead (from a request until an executor works), above 0, and of hold (after it).
        smooth_s: whole seconds over which a policy averages arrivals; the rate learned from gets the noise it would
            see.
        seed: of that noise.
        many: most moments to learn from, one per 60 s at most.
        unknown: (T,) seconds whose rate was not measured. Moments whose trends or peaks touch one are left out, since
            what fills a gap leads to what comes after it. None: all were measured.

    Returns:
        A fitted forecast of the peak for either stretch; None if less than half a day of the past can be used.
    """
    lead_s, offsets_s = times_s[0], forecast_offsets(*times_s)
    reach = int(offsets_s[-1])
    first = max(said.begins_s - begins_s, len(rate) - DAYS * 86_400.0, float(smooth_s))
    last = len(rate) - reach - 1
    if last - first < LEAST_S:
        return None
    every_s = max(EVERY_S, (last - first) / many)
    moments = np.arange(first, last, every_s).astype(np.int64)
    if unknown is not None:
        gone, back = np.concatenate([[0], np.cumsum(unknown)]), max(TRENDS_S) + smooth_s
        moments = moments[gone[moments + reach + 1] == gone[np.maximum(moments - back, 0)]]
        if len(moments) * every_s < LEAST_S:
            return None
    since = max(int(moments[0]) - max(TRENDS_S) - smooth_s, 0)  # what lies before it no moment looks back on
    now, trends = recent_rates(_noisy_totals(rate, since, seed), moments - since, smooth_s)
    known = Moments(said.newest_at(begins_s + moments.astype(float)), now, trends)
    soon, then = offsets_s[offsets_s <= lead_s + 1e-9], offsets_s[offsets_s >= lead_s - 1e-9]
    lead, newer, at = int(lead_s), rate[since:], moments - since
    peaks = rolling_maximum(newer, lead + 1)[at], rolling_maximum(newer, reach - lead + 1)[at + lead]
    return fit_peaks(known, soon, peaks[0]), fit_peaks(known, then, peaks[1])


def unknown_seconds(missing: NDArray[np.bool_], step_s: float, seconds: int) -> NDArray[np.bool_]:
    """Return (seconds,) whether the step of each second is one of (N,) missing steps, of `step_s` seconds."""
    return missing[(np.arange(seconds) / step_s).astype(np.int64)]


def _noisy_totals(rate: Floats, since: int, seed: int) -> Floats:
    """(T − since + 1,) noisy records before each second from one on, part by part: a past may last for years."""
    chance, totals = np.random.default_rng(seed), np.zeros(1)
    for begin, end in pairwise([*range(0, since, PART), since, len(rate)]):
        part = rate[begin:end]
        noisy = np.maximum(part + chance.standard_normal(len(part)) * np.sqrt(part), 0.0)
        totals = np.cumsum(np.concatenate([totals[-1:], noisy]))
    return totals


def learn_calibrator(forecaster: Forecaster, series: Series, planning: Planning, scale: float) -> PeakCalibrator | None:
    """Learn from a job's past how the forecaster that serves it tells of peaks.

    As in a backtest of the job, but by the forecaster's own steps and with the 3 s smoothing of a live job. At
    least a third of the past is history for the forecaster only.

    Args:
        forecaster: that serves.
        series: the job's load, records per wall second, on the job's clock; NaN: missing, nothing is learned there.
        planning: lead and hold, in wall seconds.
        scale: seconds of the job's clock per wall second, above 0.

    Returns:
        None where the past is too short (less than 12 wall hours to learn from, or fewer than two known steps), where
        the lead is under a second, or for a fitted forecaster, which is too certain on the past it was fitted to.

    Raises:
        SeriesError: the series has another step than the forecaster, or a rate is negative or infinite.
        ZeroDivisionError: a scale of 0.
    """
    if not isinstance(forecaster, UNFITTED) or planning.lead_s < 1:
        return None
    # The forecaster has a third of the past to begin with, as in a backtest.
    step_s, many = series.step_s / scale, len(series)
    first = max(many - round(DAYS * 86_400.0 / step_s), many // 3, many - STEPS)
    if (many - first) * step_s < LEAST_S or np.isfinite(series.values).sum() < 2:
        return None
    older = Series(series.start, series.step_s, series.values[:first])
    said = issue_stepwise(forecaster, older, series.values[first:]).scaled(1.0, scale)
    rate = rates_per_second(fill_gaps(series.values)[first:], said.step_s)
    unknown = unknown_seconds(np.isnan(series.values[first:]), said.step_s, len(rate))
    times_s = planning.lead_s, planning.hold_s
    both = learn_peaks(said, rate, said.begins_s, times_s, int(SMOOTH_S), 0, unknown=unknown)
    return None if both is None else PeakCalibrator(both[0], both[1], planning.lead_s, planning.hold_s, scale)


def recent_rates(arrived: Floats, moments: Integers, smooth_s: int) -> tuple[Floats, Floats]:
    """Average arrivals before each moment, and compare with the averages some time earlier.

    Args:
        arrived: (T + 1,) records before each second.
        moments: (N,) seconds.
        smooth_s: whole seconds that are averaged.

    Returns:
        (N,) records/s, and (N, 5) how much more that is than 30, 60, 120, 300 and 900 s earlier (`TRENDS_S`). Before
        the beginning the load counts as what it was at first.
    """
    now = _mean(arrived, moments, smooth_s)
    return now, np.stack([now - _mean(arrived, moments - ago, smooth_s) for ago in TRENDS_S], axis=1)


def _mean(arrived: Floats, ends: Integers, smooth_s: int) -> Floats:
    """Before a load begins it is taken for what it was at first."""
    end = np.maximum(ends, min(smooth_s, len(arrived) - 1))
    start = np.maximum(end - smooth_s, 0)
    return (arrived[end] - arrived[start]) / np.maximum(end - start, 1)
