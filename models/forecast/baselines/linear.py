"""Direct multi-step ridge regression: one per step ahead, on recent, daily and weekly lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, Task, begin_state, fill_gaps
from models.forecast.core.residuals import NEWEST, ResidualWindow, build_residual_window
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.core.tracks import Carrying

Indices = NDArray[np.int64]
RECENT = 24
"""Newest steps that are regressors."""
BESIDE = 2
"""Steps before and after the same time in an earlier season that are read."""
TRAINED = 10_000
"""Newest rows that are fitted, at most."""
_STRENGTHS = tuple(10.0**power for power in range(-4, 5))
_OFFSET = 0.05  # of the mean load: what is added before a logarithm
_CAP = 2.0  # times the highest load read: forecasts are cut there
_LEAST_ROWS = 48


@dataclass(frozen=True)
class LinearWeights:
    """Parameters of a fitted `LinearForecaster`.

    Attributes:
        seasons: steps of the seasons whose lags are read.
        scale: mean load in records/s; loads are divided by it.
        logs: whether logarithms of the scaled loads are read and forecast.
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
    """A fitted ridge regression, with the quantiles of its newest 500 errors per step ahead around it.

    Until its lags reach into the history, the seasonal naive forecast stands in. Begun on the history it was fitted to,
    its first errors are in-sample and its quantiles a little too narrow.

    Attributes:
        task: what is forecast.
        fitted: its parameters.
        kind: "ridge".
    """

    task: Task
    fitted: LinearWeights
    kind: str = "ridge"
    carries: ClassVar[Any] = ResidualWindow

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history (may be empty); `carried` is None until it covers the longest lag.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        state = begin_state(self.task, history, RECENT + BESIDE)
        values = fill_gaps(history.values, self.task)[-state.seen :] if state.seen else np.empty(0)
        moments = np.arange(self._needs - 1, len(values))[-NEWEST - self.horizon :]
        if not len(moments):
            return state
        made = self._made(values, moments)
        return replace(state, carried=build_residual_window(made, history.values[-state.seen :][moments]))

    def next_carried(self, before: State, after: State, value: float) -> ResidualWindow | None:
        """Return the newest forecasts and errors after one more step; None until the history covers the longest lag.

        Args:
            before: the state before the step.
            after: the state after it, gaps filled.
            value: records/s of the step; NaN: missing, its errors stay unknown.
        """
        if after.seen < self._needs:
            return None
        made = self._made(after.values, np.array([len(after.values) - 1]))
        past: ResidualWindow | None = before.carried
        return build_residual_window(made, np.array([value])) if past is None else past.after_step(value, made[0])

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN while nothing was ever seen."""
        naive, past = Naive(self.task), state.carried
        return naive.quantiles_of(state) if past is None else naive.quantiles_around(past.made[0], past, state)

    def basis(self, state: State) -> str:
        """Return "ridge", or what the naive forecast that stands in rests on (`Naive.basis`)."""
        return self.kind if state.carried is not None else Naive(self.task).basis(state)

    @cached_property
    def _lags(self) -> Indices:
        return lag_offsets(self.task, self.fitted.seasons)

    @cached_property
    def _needs(self) -> int:
        return 1 - int(self._lags.min())

    @cached_property
    def _weighed(self) -> tuple[Floats, Floats]:
        return np.array(self.fitted.weights), np.array(self.fitted.bias)

    def _made(self, values: Floats, moments: Indices) -> Floats:
        """Return (N, horizon) forecasts in records/s, made after the steps at these N indices of the values."""
        seen, scale = values[moments[:, None, None] + self._lags], self.fitted.scale  # (N, horizon, lags)
        weights, bias = self._weighed
        made = np.einsum("nhp,hp->nh", _read(seen / scale, self.fitted.logs), weights) + bias
        if self.fitted.logs:
            made = np.exp(np.minimum(made, 50.0)) - _OFFSET
        found: Floats = np.clip(made * scale, 0.0, _CAP * seen.max(axis=(1, 2))[:, None])
        return found


def lag_offsets(task: Task, seasons: Sequence[int]) -> Indices:
    """Return which past steps the regression reads for each step ahead, as offsets from the newest step.

    These are the newest 24 steps, then for each season the same time in the newest repeat that is wholly known, with
    the 2 steps before and after it.

    Args:
        task: gives the horizon.
        seasons: lengths in steps; 0 raises ZeroDivisionError.

    Returns:
        (horizon, 24 + 5 · seasons) steps, row h − 1 for h steps ahead: 0 is the newest step, −1 the one before.
    """
    rows = []
    for h in range(1, task.horizon + 1):
        back = list(range(0, -RECENT, -1))
        for season in seasons:
            same = h - season * -(-(h + BESIDE) // season)
            back += range(same - BESIDE, same + BESIDE + 1)
        rows.append(back)
    return np.array(rows, dtype=np.int64)


def fit_linear(task: Task, history: Series) -> LinearForecaster:
    """Fit a ridge regression per step ahead to the newest 10,000 rows, on loads or on their logarithms.

    Both are fitted to the older 80 % of the rows: the lower squared error one step ahead on the rest wins. Lags of a
    day and of a week are read where the history holds two of them. Ridge strengths (10⁻⁴ to 10⁴) are chosen by
    leave-one-out.

    Args:
        task: what is forecast.
        history: records/s in the task's steps, at least 0 (neither is checked); NaN: missing, filled only as regressor.

    Raises:
        SeriesError: the history gives fewer than 48 rows, or fewer than 2 with a known load at some step ahead.
        ValueError: scikit-learn's, where a negative or infinite load gives a regressor that is not finite.
    """
    rows = _training_rows(task, history)
    older = len(rows.moments) - len(rows.moments) // 5
    logs = _one_step_error(rows, older, True) < _one_step_error(rows, older, False)
    return _fit_rows(rows, slice(None), task.horizon, logs)


class _TrainingRows(NamedTuple):
    """Rows that a ridge regression is fitted to.

    Attributes:
        task: what is forecast.
        seasons: steps of the seasons whose lags are read.
        offsets: (horizon, lags) as `lag_offsets` returns them.
        values: (T,) records/s, gaps filled.
        moments: (N,) indices of the newest step that each row reads.
        outcomes: (N, horizon) records/s; NaN: missing.
        scale: mean load, records/s.
    """

    task: Task
    seasons: list[int]
    offsets: Indices
    values: Floats
    moments: Indices
    outcomes: Floats
    scale: float


def _training_rows(task: Task, history: Series) -> _TrainingRows:
    known = np.flatnonzero(np.isfinite(history.values))
    raw = history.values[int(known[0]) :] if len(known) else history.values[:0]
    seasons = [season for season in (task.day, task.week) if len(raw) >= 2 * season and season > 2 * BESIDE]
    offsets = lag_offsets(task, seasons)
    moments = np.arange(-int(offsets.min()), len(raw) - task.horizon)[-TRAINED:]
    if len(moments) < _LEAST_ROWS:
        raise SeriesError(
            f"ridge: {len(raw)} steps leave {len(moments)} rows to learn from; at least {_LEAST_ROWS} are needed. "
            "Ingest more history."
        )
    values = fill_gaps(raw, task)
    outcomes = raw[moments[:, None] + np.arange(1, task.horizon + 1)]
    return _TrainingRows(task, seasons, offsets, values, moments, outcomes, float(values.mean()) or 1.0)


def _fit_rows(rows: _TrainingRows, part: slice, ahead: int, logs: bool) -> LinearForecaster:
    """Fit steps 1 to `ahead` on a part of the rows, on loads or on their logarithms."""
    from sklearn.linear_model import RidgeCV  # it takes a second to load, and a server fits nothing

    inputs = _read(rows.values[rows.moments[part, None, None] + rows.offsets[:ahead]] / rows.scale, logs)
    targets = _read(rows.outcomes[part, :ahead] / rows.scale, logs)
    weights, bias = [], []
    for h in range(ahead):
        known = np.isfinite(targets[:, h])
        if known.sum() < 2:
            raise SeriesError(f"ridge: {known.sum()} rows with a known load {h + 1} steps ahead; ingest more history.")
        ridge = RidgeCV(alphas=_STRENGTHS).fit(inputs[known, h], targets[known, h])
        weights.append(ridge.coef_.tolist())
        bias.append(float(ridge.intercept_))
    fitted = LinearWeights(rows.seasons, rows.scale, logs, weights, bias)
    return LinearForecaster(replace(rows.task, horizon=ahead), fitted)


def _one_step_error(rows: _TrainingRows, older: int, logs: bool) -> float:
    """Return the mean squared error one step ahead on the rows from index `older` on, fitted on those before."""
    made = _fit_rows(rows, slice(older), 1, logs)._made(rows.values, rows.moments[older:])
    return float(np.nanmean((made - rows.outcomes[older:, :1]) ** 2))


def _read(ratio: Floats, logs: bool) -> Floats:
    """Loads in mean loads, or the logarithms of that."""
    return np.log(ratio + _OFFSET) if logs else ratio
