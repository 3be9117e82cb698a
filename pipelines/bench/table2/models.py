"""Every model of the table as two steps: fit on a cell's training part, then forecast its test part."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import torch

from models.forecast.core.series import Floats
from models.forecast.replication.arima import choose, roll
from models.forecast.replication.gru import CONTEXT, NETWORKS, network
from models.forecast.replication.training import EPOCHS, fit, predict, scale_of
from pipelines.bench.table2.cells import Cell

Predict = Callable[[], tuple[Floats, str]]
"""Forecasts of the test rows, one step ahead, and a remark."""
Fit = Callable[[Cell, int], Predict]

PAPER = ("gru", "cnn", "arima", "prophet")
"""The models of the paper; all others stand beside them."""
MEAN_OF = 6


class MissingExtra(Exception):
    """A model whose library is not installed; the message says how to get it."""


def models() -> dict[str, Fit]:
    """Every model by its name, in the order of the table."""
    networks = {name: _network(name) for name in NETWORKS}
    return {
        **networks,
        "arima": _arima,
        "prophet": _prophet,
        "last value": lambda cell, seed: lambda: (_lagged(cell, 1), ""),
        "same time yesterday": lambda cell, seed: lambda: (_lagged(cell, cell.day), ""),
        "same time last week": lambda cell, seed: lambda: (_lagged(cell, 7 * cell.day), ""),
        f"mean of last {MEAN_OF}": lambda cell, seed: lambda: (_mean(cell), ""),
    }


def _network(name: str) -> Fit:
    def fitted(cell: Cell, seed: int) -> Predict:
        generator = torch.Generator().manual_seed(seed)
        model, scale = network(name, generator), scale_of(cell.training)
        losses = list(fit(model, scale.shrink(cell.training), EPOCHS, generator))

        def predicted() -> tuple[Floats, str]:
            scaled = scale.shrink(cell.loads[cell.first - CONTEXT :])
            return scale.widen(predict(model, scaled)), f"loss {losses[0]:.4f} → {losses[-1]:.4f}"

        return predicted

    return fitted


def _arima(cell: Cell, seed: int) -> Predict:
    order, parameters = choose(cell.training)
    return lambda: (roll(order, parameters, cell.loads, cell.first, cell.day), str(order))


def _prophet(cell: Cell, seed: int) -> Predict:
    """The library's defaults, fitted once; as in the paper `yhat` of the whole test part is the forecast."""
    try:
        import pandas as pd
        from prophet import Prophet
    except ImportError:
        raise MissingExtra("not installed; pip install -r requirements-prophet.txt") from None
    logging.getLogger("cmdstanpy").setLevel(logging.WARNING)
    times = pd.to_datetime(cell.times, unit="s")
    model = Prophet()
    model.fit(pd.DataFrame({"ds": times[: cell.first], "y": cell.training}), seed=seed)

    def predicted() -> tuple[Floats, str]:
        said = model.predict(pd.DataFrame({"ds": times[cell.first :]}))
        return said["yhat"].to_numpy(dtype=np.float64), "no updates after training"

    return predicted


def _lagged(cell: Cell, lag: int) -> Floats:
    return cell.loads[cell.first - lag : len(cell.loads) - lag]


def _mean(cell: Cell) -> Floats:
    rows = np.lib.stride_tricks.sliding_window_view(cell.loads[cell.first - MEAN_OF : -1], MEAN_OF)
    means: Floats = rows.mean(axis=1)
    return means
