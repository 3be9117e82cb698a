"""The parameters of ETS, Theta and ARIMA, found by statsforecast on what the seasonal curve leaves over."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from statsforecast.models import AutoARIMA, AutoETS, OptimizedTheta

from models.forecast.classical.classical import Classical, Recursion
from models.forecast.classical.harmonics import begins, fit_harmonics
from models.forecast.core.forecaster import Task, fill
from models.forecast.core.series import Floats, Series, SeriesError

NEWEST = 3000
"""Of how many of the newest steps the parameters are found."""
LEAST = 20
"""Fewer steps than this say nothing of them."""


def fit_classical(kind: str, task: Task, history: Series) -> Classical:
    """Fit `ets`, `theta` or `arima`: a seasonal curve first, then the recursion on the rest.

    Raises:
        SeriesError: the history is too short.
    """
    known = int(np.isfinite(history.values).sum())
    if known < LEAST:
        raise SeriesError(f"{kind}: {known} known steps; at least {LEAST} are needed. Ingest more history.")
    season = fit_harmonics(history)
    values = fill(history.values, task)
    left: Floats = (values - season.at(begins(history)))[np.isfinite(values)][-NEWEST:]
    scale = float(np.std(left)) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an optimiser that stops early is answered by a poorer fit, not by a line
        recursion = {"ets": _ets, "theta": _theta, "arima": _arima}[kind](left / scale, scale)
    return Classical(kind, task, season, recursion)


def _ets(left: Floats, scale: float) -> Recursion:
    """Additive error, with no trend, a trend or a damped one, whichever has the lowest AICc.

    ℓ ← ℓ + φb + αe, b ← φb + βe. The scale is not needed: nothing but ratios are kept.
    """
    found = AutoETS(model="AZN", season_length=1).fit(left).model_
    alpha, beta, _, damping = (float(value) for value in found["par"][:4])
    if found["components"][1] == "N":
        return Recursion((1.0,), ((1.0,),), (alpha,), (0.0,))
    damping = damping if found["components"][3] == "D" else 1.0
    return Recursion((1.0, damping), ((1.0, damping), (0.0, damping)), (alpha, beta), (0.0, 0.0))


def _theta(left: Floats, scale: float) -> Recursion:
    """The optimised theta method: simple exponential smoothing with the drift (1 − 1/θ)·b, b the slope of the whole.

    Fiorucci et al. 2016, equation 10, without its term (1 − α)ᵗ, which dies out; Hyndman and Billah 2003.
    """
    found = OptimizedTheta(season_length=1).fit(left).model_
    alpha, theta = float(found["par"]["alpha"]), float(found["par"]["theta"])
    drift = (1 - 1 / theta) * float(found["states"][0, 3]) * scale
    return Recursion((1.0,), ((1.0,),), (alpha,), (drift,))


def _arima(left: Floats, scale: float) -> Recursion:
    """The ARIMA (p, q ≤ 3, d ≤ 1) of the lowest AICc."""
    model = AutoARIMA(max_p=3, max_q=3, max_d=1, seasonal=False, allowdrift=False, approximation=True)
    found = model.fit(left).model_
    return arima_recursion(*_coefficients(found), scale=scale)


def _coefficients(found: dict[str, Any]) -> tuple[Floats, Floats, int, float]:
    p, q, *_, d, _ = found["arma"]
    named = found["coef"]
    phi = np.array([float(named[f"ar{i}"]) for i in range(1, p + 1)])
    theta = np.array([float(named[f"ma{i}"]) for i in range(1, q + 1)])
    return phi, theta, int(d), float(named.get("intercept", 0.0))


def arima_recursion(phi: Floats, theta: Floats, d: int, mean: float, scale: float = 1.0) -> Recursion:
    """An ARIMA(p, d, q) in innovations form (Hyndman et al. 2008, section 11.3).

    With φ* the coefficients of φ(B)(1 − B)ᵈ and r = max(p + d, q): F shifts and weighs by φ*, g = φ* + θ, and c holds
    m·(1 − Σφ) for a mean of m.
    """
    polynomial = np.concatenate([[1.0], -phi])
    for _ in range(d):
        polynomial = np.convolve(polynomial, [1.0, -1.0])
    r = max(len(polynomial) - 1, len(theta), 1)
    weights, moving = np.zeros(r), np.zeros(r)
    weights[: len(polynomial) - 1] = -polynomial[1:]
    moving[: len(theta)] = theta
    F = np.zeros((r, r))
    F[:, 0] = weights
    F[:-1, 1:] = np.eye(r - 1)
    moved = np.zeros(r)
    moved[0] = mean * scale * (1 - float(phi.sum())) if d == 0 else 0.0
    return Recursion(
        tuple(float(value) for value in np.eye(r)[0]),
        tuple(tuple(float(value) for value in row) for row in F),
        tuple(float(value) for value in weights + moving),
        tuple(float(value) for value in moved),
    )
