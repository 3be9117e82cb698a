"""Fits ETS, Theta and ARIMA by statsforecast to the residual of a seasonal curve.

It is imported where it fits: with all that it brings it takes a second, and whoever serves, or fits another kind, does
without.
"""

from __future__ import annotations

import warnings

import numpy as np

from configs.bounds import DAY_S, WEEK_S
from models.forecast.classical.classical import Classical, Harmonics, Recursion, begins, waves
from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import Floats, Series, SeriesError

NEWEST = 3000
"""Newest steps that the parameters are fitted to, at most."""
_DAILY, _WEEKLY = (0, 2, 4, 8, 12), (0, 6, 20, 41)  # numbers of harmonics that are tried
LEAST = 20
"""Known steps that a fit needs at least."""


def fit_classical(kind: str, task: Task, history: Series) -> Classical:
    """Fit a seasonal curve, then ETS, Theta or ARIMA to the newest 3000 steps of its residual.

    Warnings of the fit are silenced: where the optimiser stops early, the fit is merely poorer.

    Args:
        kind: "ets", "theta" or "arima".
        task: what is forecast.
        history: records/s in the task's steps, which is not checked; NaN: missing, filled as by `fill_gaps`.

    Raises:
        SeriesError: fewer than 20 steps are known.
        KeyError: the kind is none of the three.
        Exception: whatever statsforecast raises where it cannot fit the residual.
    """
    known = int(np.isfinite(history.values).sum())
    if known < LEAST:
        raise SeriesError(f"{kind}: {known} known steps; at least {LEAST} are needed. Ingest more history.")
    season = fit_harmonics(history)
    values = fill_gaps(history.values, task)
    left: Floats = (values - season.at(begins(history)))[np.isfinite(values)][-NEWEST:]
    scale = float(np.std(left)) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recursion = {"ets": _ets, "theta": _theta, "arima": _arima}[kind](left / scale, scale)
    return Classical(kind, task, season, recursion)


def fit_harmonics(history: Series) -> Harmonics:
    """Fit a seasonal curve by least squares, its number of waves chosen by the Bayesian information criterion.

    Tried are 0 to 12 waves per day, given two days of history, and 0 to 41 per week, given two weeks. Waves of two
    steps or less are left out, as are curves with more coefficients than a quarter of the known steps.

    Args:
        history: records/s; NaN: missing, left out.

    Returns:
        The curve in records/s; constant at the mean where no more can be fitted, at 0 where no step is known.
    """
    times = begins(history)
    known = np.isfinite(history.values)
    times, values = times[known], history.values[known]
    if not len(values):
        return Harmonics([], [0.0])
    span_s, best = len(history) * history.step_s, (np.inf, Harmonics([], [float(values.mean())]))
    for daily in _DAILY if span_s >= 2 * DAY_S else (0,):
        for weekly in _WEEKLY if span_s >= 2 * WEEK_S else (0,):
            orders = sorted({7 * k for k in range(1, daily + 1)} | set(range(1, weekly + 1)))
            kept = [k for k in orders if WEEK_S / k > 2 * history.step_s]
            if 1 + 2 * len(kept) > len(values) / 4:
                continue
            columns = waves(times, kept)
            coefficients, *_ = np.linalg.lstsq(columns, values, rcond=None)
            squares = float(np.mean((values - columns @ coefficients) ** 2))
            score = len(values) * np.log(squares + 1e-12) + columns.shape[1] * np.log(len(values))
            if score < best[0]:
                best = (score, Harmonics(kept, coefficients.tolist()))
    return best[1]


def _ets(left: Floats, scale: float) -> Recursion:
    """Fit ETS with additive error and no, an additive or a damped trend, whichever has the lowest AICc.

    ℓ ← ℓ + φb + αe, b ← φb + βe. The scale is not needed: the parameters are ratios.
    """
    from statsforecast.models import AutoETS

    found = AutoETS(model="AZN", season_length=1).fit(left).model_
    alpha, beta, _, damping = (float(value) for value in found["par"][:4])
    if found["components"][1] == "N":
        return Recursion([1.0], [[1.0]], [alpha], [0.0])
    damping = damping if found["components"][3] == "D" else 1.0
    return Recursion([1.0, damping], [[1.0, damping], [0.0, damping]], [alpha, beta], [0.0, 0.0])


def _theta(left: Floats, scale: float) -> Recursion:
    """Fit the optimised theta method: simple exponential smoothing with drift (1 − 1/θ)·b, b the slope of the whole.

    Fiorucci et al. 2016, equation 10, without its term (1 − α)ᵗ, which dies out; Hyndman and Billah 2003.
    """
    from statsforecast.models import OptimizedTheta

    found = OptimizedTheta(season_length=1).fit(left).model_
    alpha, theta = float(found["par"]["alpha"]), float(found["par"]["theta"])
    drift = (1 - 1 / theta) * float(found["states"][0, 3]) * scale
    return Recursion([1.0], [[1.0]], [alpha], [drift])


def _arima(left: Floats, scale: float) -> Recursion:
    """Fit the ARIMA (p, q ≤ 3, d ≤ 1) of the lowest AICc."""
    from statsforecast.models import AutoARIMA

    model = AutoARIMA(max_p=3, max_q=3, max_d=1, seasonal=False, allowdrift=False, approximation=True)
    found = model.fit(left).model_
    p, q, *_, d, _ = found["arma"]
    named = found["coef"]
    phi, theta = (np.array([float(named[f"{name}{i + 1}"]) for i in range(n)]) for name, n in (("ar", p), ("ma", q)))
    return arima_recursion(phi, theta, int(d), float(named.get("intercept", 0.0)), scale)


def arima_recursion(phi: Floats, theta: Floats, d: int, mean: float, scale: float = 1.0) -> Recursion:
    """Convert a fitted ARIMA(p, d, q) to a `Recursion` (innovations form; Hyndman et al. 2008, section 11.3).

    With φ* the coefficients of φ(B)(1 − B)ᵈ, B the shift by one step, and r = max(p + d, q, 1): F shifts and weighs by
    φ*, g = φ* + θ, and c holds mean · scale · (1 − Σφ), or 0 where d is above 0.

    Args:
        phi: (p,) autoregressive coefficients.
        theta: (q,) moving-average coefficients, added with a plus sign.
        d: how often the series is differenced, at least 0.
        mean: of the scaled series; counts only where d is 0.
        scale: records/s per unit of the scaled series.

    Returns:
        The recursion in records/s, with r numbers of state.
    """
    polynomial = np.concatenate([[1.0], -phi])
    for _ in range(d):
        polynomial = np.convolve(polynomial, [1.0, -1.0])
    r = max(len(polynomial) - 1, len(theta), 1)
    first = np.eye(r)[0]
    weights, moving = (np.pad(row, (0, r - len(row))) for row in (-polynomial[1:], theta))
    F = np.eye(r, k=1)
    F[:, 0] = weights
    moved = first * (0.0 if d else mean * scale * (1 - float(phi.sum())))
    return Recursion(first.tolist(), F.tolist(), (weights + moving).tolist(), moved.tolist())
