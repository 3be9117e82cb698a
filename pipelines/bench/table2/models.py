"""Every model of the table as two steps: fit on a cell's training part, then forecast its test part."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from models.forecast.core.series import Floats
from pipelines.bench.table2.arima import choose_order, forecast_rolling
from pipelines.bench.table2.loads import Cell
from pipelines.bench.table2.networks import EPOCHS, NETWORKS, build_network, forecast_test, scale_loads, train_network

Predict = Callable[[], tuple[Floats, str]]
"""Forecasts of the test rows, one step ahead, and a remark."""
Fit = Callable[[Cell, int], Predict]

PAPER = ("gru", "cnn", "arima", "prophet")
"""The models of the paper; all others stand beside them."""
MEAN_OF = 6  # steps


class MissingExtra(Exception):
    """A model whose library is not installed; the message says how to get it."""


def list_models() -> dict[str, Fit]:
    """Map the table's models, in its order, to functions that fit a series with a seed and return one that forecasts.

    Fitting raises MissingExtra where a library is not installed.
    """
    return {
        **{name: partial(_network, name) for name in NETWORKS},
        "arima": _arima,
        "prophet": _prophet,
        "last value": lambda cell, seed: lambda: (_lagged(cell, 1), ""),
        "same time yesterday": lambda cell, seed: lambda: (_lagged(cell, cell.day), ""),
        "same time last week": lambda cell, seed: lambda: (_lagged(cell, 7 * cell.day), ""),
        f"mean of last {MEAN_OF}": lambda cell, seed: lambda: (_mean(cell), ""),
    }


def _network(name: str, cell: Cell, seed: int) -> Predict:
    generator = torch.Generator().manual_seed(seed)
    model = build_network(name, generator)
    losses = list(train_network(model, scale_loads(cell)[: cell.first], EPOCHS, generator))
    return lambda: (forecast_test(model, cell), f"loss {losses[0]:.4f} → {losses[-1]:.4f}")


def _arima(cell: Cell, seed: int) -> Predict:
    order, parameters = choose_order(cell.training)
    return lambda: (forecast_rolling(order, parameters, cell.loads, cell.first, cell.day), str(order))


def _prophet(cell: Cell, seed: int) -> Predict:
    """The library's defaults, fitted once; as in the paper `yhat` of the whole test part is the forecast."""
    try:
        import pandas as pd
        from prophet import Prophet
    except ImportError:
        raise MissingExtra("not installed; pip install -r requirements-prophet.txt") from None
    logging.getLogger("cmdstanpy").setLevel(logging.WARNING)
    times = pd.to_datetime(cell.start + cell.step_s * np.arange(len(cell.loads)), unit="s")
    model = Prophet()
    model.fit(pd.DataFrame({"ds": times[: cell.first], "y": cell.training}), seed=seed)

    def predicted() -> tuple[Floats, str]:
        forecast = model.predict(pd.DataFrame({"ds": times[cell.first :]}))
        return forecast["yhat"].to_numpy(dtype=np.float64), "no updates after training"

    return predicted


def _lagged(cell: Cell, lag: int) -> Floats:
    return cell.loads[cell.first - lag : len(cell.loads) - lag]


def _mean(cell: Cell) -> Floats:
    rows = np.lib.stride_tricks.sliding_window_view(cell.loads[cell.first - MEAN_OF : -1], MEAN_OF)
    means: Floats = rows.mean(axis=1)
    return means
