"""Pictures of a training run, for MLflow: forecast against the load, errors by horizon, the training curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from models.forecast.neural.training import Epoch
from models.forecast.selection.backtest import Backtest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _FAN, _SEARCH = "#1f2933", "#2f6f9f", "#c4713b"
_LINES = ("#2f6f9f", "#c4713b", "#7a8794", "#b9c0c7")


def plot_forecasts(backtest: Backtest, name: str) -> Figure:
    """Plot held-out load with median and quantile ranges, one step (above) and the whole horizon (below) ahead.

    Args:
        backtest: actual (origins, horizon), quantiles (origins, horizon, levels), records/s; an origin is the time at
            which a forecast is issued. Drawn over hours since the first held-out step; NaN leave gaps.
        name: of the forecaster, for the titles.

    Returns:
        The figure, not saved.
    """
    from matplotlib.figure import Figure

    horizon = backtest.actual.shape[1]
    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    hours = np.arange(len(backtest.actual)) * backtest.step_s / 3600
    for panel, ahead in zip(panels, (1, horizon), strict=True):
        at = hours + (ahead - 1) * backtest.step_s / 3600
        rows = backtest.quantiles[:, ahead - 1]
        for i, level in enumerate(backtest.levels[: len(backtest.levels) // 2]):
            label = f"{level:g} to {backtest.levels[-1 - i]:g}"
            panel.fill_between(at, rows[:, i], rows[:, -1 - i], color=_FAN, alpha=0.18, linewidth=0, label=label)
        panel.plot(at, backtest.median[:, ahead - 1], color=_FAN, linewidth=1.2, label="median")
        panel.plot(hours, backtest.actual[:, 0], color=_INK, linewidth=1.4, label="load")
        panel.set_title(f"{name}, {ahead} step{'s' if ahead > 1 else ''} ahead", loc="left", fontsize=10)
        panel.set(ylabel="records/s", ylim=(0, None))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, ncols=5, fontsize=8)
    panels[1].set_xlabel("hours since the first held-out step")
    return figure


def plot_error_by_horizon(backtests: Mapping[str, Backtest]) -> Figure:
    """Plot the mean pinball loss (records/s, log scale) by steps ahead, a line per forecaster; the figure is not saved.

    Only the first four backtests (actual (origins, horizon), quantiles (origins, horizon, levels)) are drawn.
    """
    figure, panel = _panel("steps ahead", "mean pinball loss, records/s")
    for (name, backtest), colour in zip(backtests.items(), _LINES, strict=False):
        losses = backtest.pinball_by_horizon()
        panel.plot(range(1, len(losses) + 1), losses, color=colour, marker="o", markersize=3, label=name)
    panel.set_yscale("log")  # the last value is an order of magnitude worse than the rest
    panel.legend(frameon=False, fontsize=8)
    return figure


def plot_training_curve(epochs: Sequence[Epoch]) -> Figure:
    """Plot a network's training and validation loss (pinball loss ÷ mean load) by epoch; the figure is not saved.

    Only epochs of the phase `search` are drawn, with a line at the least validation loss; without any, the axes are
    empty.
    """
    figure, panel = _panel("epoch (0: linear start)", "pinball loss ÷ mean load")
    search = [epoch for epoch in epochs if epoch.phase == "search"]
    index = [epoch.index for epoch in search]
    panel.plot(index, [e.train_loss for e in search], color=_FAN, label="training rows")
    panel.plot(index, [e.validation_loss for e in search], color=_SEARCH, label="newest rows")
    if search:
        best = min(search, key=lambda epoch: epoch.validation_loss)
        panel.axvline(best.index, color=_INK, linewidth=0.8, linestyle=":", label=f"epochs kept: {best.index}")
    panel.legend(frameon=False, fontsize=8)
    return figure


def _panel(over: str, what: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel: Axes = figure.subplots()
    panel.set(xlabel=over, ylabel=what)
    panel.spines[["top", "right"]].set_visible(False)
    return figure, panel
