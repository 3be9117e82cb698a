"""What a trace's past teaches about its peaks before policies are judged on what follows."""

from __future__ import annotations

import numpy as np

from configs.contract import Planning
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.policy.core.capacity import Floats, Integers
from models.policy.received.nowcast import offsets
from models.policy.received.outlook import SMOOTH_S
from models.policy.received.peak_calibrator import PeakCalibrator
from models.policy.received.peaks import TRENDS_S, Moments, Peaks, fit
from models.twin.experiment.foresight import IssuedForecasts, followed, highest
from models.twin.sim.arrivals import filled, rates, summed

DAYS = 14.0
"""At most so much of the past is looked at, the newest of it."""
EVERY_S = 60.0
"""Seconds between the moments that are looked at; longer where they would be more than `MOMENTS`."""
MOMENTS = 20_000
LEAST_S = 43_200.0
"""A past shorter than half a day teaches nothing."""
UNFITTED = (Blend, Naive)
"""Forecasters that are not fitted to a past: what they said of it is what they would have said then."""
STEPS = 20_000
"""Of a forecaster that are looked at for a running job, at most."""


def peaks_learned(
    said: IssuedForecasts, rate: Floats, begins_s: float, times_s: tuple[float, float], smooth_s: int, seed: int,
    many: int = MOMENTS,
) -> tuple[Peaks, ...] | None:  # fmt: skip
    """How the peaks of both `peaks.stretches` are forecast after a past; None where it is too short.

    Args:
        said: by a forecaster, records/s.
        rate: (T,) smooth records/s of every second of the past.
        begins_s: epoch seconds of its first second.
        times_s: lead time, until what is asked for works, and hold, for which it must do.
        smooth_s: seconds over which a policy averages the arrivals; the present rate is as noisy as it sees it.
        seed: of that noise.
        many: moments that are looked at, at most.
    """
    lead_s, offsets_s = times_s[0], offsets(*times_s)
    reach = int(offsets_s[-1])
    first = max(said.begins_s - begins_s, len(rate) - DAYS * 86_400.0, float(smooth_s))
    last = len(rate) - reach - 1
    if last - first < LEAST_S:
        return None
    moments = np.arange(first, last, max(EVERY_S, (last - first) / many)).astype(np.int64)
    chance = np.random.default_rng(seed)
    noisy = np.maximum(rate + chance.standard_normal(len(rate)) * np.sqrt(rate), 0.0)
    now, trends = looked_back(summed(noisy), moments, smooth_s)
    known = Moments(said.curves(begins_s + moments.astype(float)), now, trends)
    soon, then = offsets_s[offsets_s <= lead_s + 1e-9], offsets_s[offsets_s >= lead_s - 1e-9]
    lead = int(lead_s)
    peaks = highest(rate, lead + 1)[moments], highest(rate, reach - lead + 1)[moments + lead]
    return fit(known, soon, peaks[0]), fit(known, then, peaks[1])


def calibrator_of(forecaster: Forecaster, series: Series, planning: Planning, scale: float) -> PeakCalibrator | None:
    """What a job's past teaches a policy to hear in this forecaster's words; None where it is too short.

    Learned as a backtest of the job learns it, but by the forecaster's own steps and the shorter smoothing of a live
    job. A forecaster that was fitted to this past teaches nothing: it is too sure there.

    Args:
        forecaster: that serves.
        series: the job's load, records per wall second, on its own clock.
        planning: lead and hold.
        scale: seconds of the job's clock per wall second.
    """
    if not isinstance(forecaster, UNFITTED) or planning.lead_s < 1:
        return None
    # The forecaster has a third of the past to begin with, as in a backtest.
    step_s, many = series.step_s / scale, len(series)
    first = max(many - round(DAYS * 86_400.0 / step_s), many // 3, many - STEPS)
    if (many - first) * step_s < LEAST_S or np.isfinite(series.values).sum() < 2:
        return None
    older = Series(series.start, series.step_s, series.values[:first])
    said = followed(forecaster, older, series.values[first:]).scaled(1.0, scale)
    rate = rates(filled(series.values)[first:], said.step_s)
    both = peaks_learned(said, rate, said.begins_s, (planning.lead_s, planning.hold_s), int(SMOOTH_S), 0)
    return None if both is None else PeakCalibrator(both[0], both[1], planning.lead_s, planning.hold_s, scale)


def looked_back(arrived: Floats, moments: Integers, smooth_s: int) -> tuple[Floats, Floats]:
    """(N,) records/s of the last seconds at moments, and (N, trends) how much more than `TRENDS_S` ago.

    Args:
        arrived: (T + 1,) records before each second.
        moments: (N,) seconds.
        smooth_s: seconds that are averaged.
    """
    now = _mean(arrived, moments, smooth_s)
    return now, np.stack([now - _mean(arrived, moments - ago, smooth_s) for ago in TRENDS_S], axis=1)


def _mean(arrived: Floats, ends: Integers, smooth_s: int) -> Floats:
    """Before a load begins it is taken for what it was at first."""
    end = np.maximum(ends, min(smooth_s, len(arrived) - 1))
    start = np.maximum(end - smooth_s, 0)
    return (arrived[end] - arrived[start]) / np.maximum(end - start, 1)
