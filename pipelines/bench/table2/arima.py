"""The source paper's ARIMA: an order chosen once by AIC, rolled at every step, its parameters refitted once a day."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from models.forecast.core.series import Floats

if TYPE_CHECKING:
    from statsforecast.models import ARIMA, AutoARIMA

MOST = 3
"""Greatest p and q."""


@dataclass(frozen=True)
class Order:
    """Order of an ARIMA: (p, d, q), and whether it has a constant, a mean for d = 0 and a drift for d = 1."""

    p: int
    d: int
    q: int
    constant: bool

    def __str__(self) -> str:
        constant = (" with mean", " with drift")[self.d] if self.constant else ""
        return f"({self.p},{self.d},{self.q}){constant}"


def choose_order(training: Floats) -> tuple[Order, dict[str, float]]:
    """Choose the ARIMA order of lowest AIC with p, q ≤ 3 and d ≤ 1 (d by KPSS test), and fit its parameters.

    Unlike the paper's pmdarima, statsforecast minimises by BFGS with at most 100 steps, not by Nelder-Mead with at most
    30; compares orders by the conditional sum of squares and fits only the best by likelihood; and adds a constant
    where that lowers the AIC.

    Args:
        training: (T,) loads.
    """
    from statsforecast.models import AutoARIMA  # it takes some seconds to load

    found = _fitted(AutoARIMA(d=None, max_p=MOST, max_q=MOST, max_d=1, seasonal=False, ic="aic"), training)
    p, q, d = (int(found["arma"][at]) for at in (0, 1, 5))
    return Order(p, d, q, bool({"intercept", "drift"} & set(found["coef"]))), found["coef"]


def forecast_rolling(order: Order, parameters: dict[str, float], loads: Floats, first: int, every: int) -> Floats:
    """Forecast `loads[first:]` one step ahead, each step from all loads before it.

    Args:
        order: of the model, which stays.
        parameters: fitted on `loads[:first]`; they serve until the first refit.
        loads: (T,) the whole series, in any unit, without NaN.
        first: index of the first load to forecast, below T.
        every: steps after which the parameters are fitted again, on all loads so far.

    Returns:
        (T − first,) forecasts, in the unit of the loads.

    Raises:
        ValueError: there is nothing to forecast, or `every` is 0.
        Exception: what statsforecast raises where a refit fails.
    """
    rolled: list[Floats] = []
    for at in range(first, len(loads), every):
        if at > first:
            parameters = _fitted(_model(order), loads[:at])["coef"]
        seen = loads[: at + every]
        # with all parameters given this only runs the filter
        rolled.append((seen - _fitted(_model(order, dict(parameters)), seen)["residuals"])[at:])
    return np.concatenate(rolled)


def _model(order: Order, fixed: dict[str, float] | None = None) -> ARIMA:
    from statsforecast.models import ARIMA

    mean, drift = order.constant and order.d == 0, order.constant and order.d == 1
    return ARIMA(order=(order.p, order.d, order.q), include_mean=mean, include_drift=drift, fixed=fixed or None)


def _fitted(model: AutoARIMA | ARIMA, loads: Floats) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each rejected order complains of its own convergence
        found: dict[str, Any] = model.fit(loads).model_
    return found
