"""The baseline that usually wins: one ridge regression per step ahead on recent, daily and weekly lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, Task, begin, fill
from models.forecast.core.residuals import NEWEST, ResidualWindow, residual_window
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.core.tracks import Carrying

Indices = NDArray[np.int64]
RECENT = 24
"""Newest steps that are read."""
BESIDE = 2
"""Steps before and after the same time in an earlier season that are read."""
TRAINED = 10_000
"""Of how many of the newest moments the weights are found."""
_STRENGTHS = tuple(10.0**power for power in range(-4, 5))
_OFFSET = 0.05  # of the mean load: what is added before a logarithm
_CAP = 2.0  # times the highest load in view: no forecast is higher
_LEAST_ROWS = 48


@dataclass(frozen=True)
class LinearWeights:
    """What was fitted.

    Attributes:
        seasons: steps of the seasons that are read.
        scale: mean load; loads are read in it.
        logs: whether their logarithms are read.
        weights: (horizon, lags) of the loads.
        bias: (horizon,) added.
    """

    seasons: list[int]
    scale: float
    logs: bool
    weights: list[list[float]]
    bias: list[float]


@dataclass(frozen=True)
class LinearForecaster(Carrying):
    """A fitted regression as a forecaster, spread by the quantiles of its errors; at first the naive one stands in.

    The errors after `init` are those on rows it was fitted to, so that it is a little too sure until new ones came.
    """

    task: Task
    fitted: LinearWeights
    kind: str = "ridge"
    carries: ClassVar[Any] = ResidualWindow

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        state = begin(self.task, history, RECENT + BESIDE)
        values = fill(history.values, self.task)[-state.seen :] if state.seen else np.empty(0)
        moments = np.arange(self._needs - 1, len(values))[-NEWEST - self.horizon :]
        if not len(moments):
            return state
        made = self._made(values, moments)
        return replace(state, carried=residual_window(made, history.values[-state.seen :][moments]))

    def carry(self, before: State, after: State, value: float) -> ResidualWindow | None:
        """What is carried one step later; `step` asks for it."""
        if after.seen < self._needs:
            return None
        made = self._made(after.values, np.array([len(after.values) - 1]))
        past: ResidualWindow | None = before.carried
        return residual_window(made, np.array([value])) if past is None else past.moved(value, made[0])

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen."""
        naive, past = Naive(self.task), state.carried
        return naive.current(state) if past is None else naive.around(past.made[0], past, state)

    def trust(self, state: State) -> str:
        """`ridge`, or what the naive forecast that stands in rests on."""
        return self.kind if state.carried is not None else Naive(self.task).trust(state)

    @cached_property
    def _lags(self) -> Indices:
        return lags(self.task, self.fitted.seasons)

    @cached_property
    def _needs(self) -> int:
        return 1 - int(self._lags.min())

    @cached_property
    def _weighed(self) -> tuple[Floats, Floats]:
        return np.array(self.fitted.weights), np.array(self.fitted.bias)

    def _made(self, values: Floats, moments: Indices) -> Floats:
        """(N, horizon) records/s at the indices of each moment's own step."""
        seen, scale = values[moments[:, None, None] + self._lags], self.fitted.scale  # (N, horizon, lags)
        weights, bias = self._weighed
        made = np.einsum("nhp,hp->nh", _read(seen / scale, self.fitted.logs), weights) + bias
        if self.fitted.logs:
            made = np.exp(np.minimum(made, 50.0)) - _OFFSET
        found: Floats = np.clip(made * scale, 0.0, _CAP * seen.max(axis=(1, 2))[:, None])
        return found


def lags(task: Task, seasons: Sequence[int]) -> Indices:
    """(horizon, lags) steps from a moment's own step to what is read for each step ahead, none of them to come."""
    rows = []
    for h in range(1, task.horizon + 1):
        back = list(range(0, -RECENT, -1))
        for season in seasons:
            same = h - season * -(-(h + BESIDE) // season)
            back += range(same - BESIDE, same + BESIDE + 1)
        rows.append(back)
    return np.array(rows, dtype=np.int64)


def fit_linear(task: Task, history: Series) -> LinearForecaster:
    """Fit on loads and on their logarithms, and keep what was nearer one step ahead on the newest fifth.

    A season is read where the history holds two of it. The strength of each ridge is chosen by leaving out each row.

    Raises:
        SeriesError: the history is too short.
    """
    known = np.flatnonzero(np.isfinite(history.values))
    raw = history.values[int(known[0]) :] if len(known) else history.values[:0]
    seasons = [season for season in (task.day, task.week) if len(raw) >= 2 * season and season > 2 * BESIDE]
    at = lags(task, seasons)
    moments = np.arange(-int(at.min()), len(raw) - task.horizon)[-TRAINED:]
    if len(moments) < _LEAST_ROWS:
        raise SeriesError(
            f"ridge: {len(raw)} steps leave {len(moments)} rows to learn from; at least {_LEAST_ROWS} are needed. "
            "Ingest more history."
        )
    values = fill(raw, task)
    scale = float(values.mean()) or 1.0
    outcomes = raw[moments[:, None] + np.arange(1, task.horizon + 1)]
    older = len(moments) - len(moments) // 5

    def fitted(rows: slice, ahead: int, logs: bool) -> LinearForecaster:
        inputs = _read(values[moments[rows, None, None] + at[:ahead]] / scale, logs)
        targets = _read(outcomes[rows, :ahead] / scale, logs)
        weights, bias = [], []
        for h in range(ahead):
            known = np.isfinite(targets[:, h])
            found = RidgeCV(alphas=_STRENGTHS).fit(inputs[known, h], targets[known, h])
            weights.append(found.coef_.tolist())
            bias.append(float(found.intercept_))
        return LinearForecaster(replace(task, horizon=ahead), LinearWeights(seasons, scale, logs, weights, bias))

    def error(logs: bool) -> float:
        made = fitted(slice(older), 1, logs)._made(values, moments[older:])
        return float(np.nanmean((made - outcomes[older:, :1]) ** 2))

    return fitted(slice(None), task.horizon, error(True) < error(False))


def _read(ratio: Floats, logs: bool) -> Floats:
    """Loads in mean loads, or the logarithms of that."""
    return np.log(ratio + _OFFSET) if logs else ratio
