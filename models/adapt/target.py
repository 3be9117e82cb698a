"""A network adapted from a load with a long history to one with a short history, as a forecaster."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from models.adapt.scale import CONTEXT, DomainScale
from models.forecast.core.conformal import Conformal, ConformalState
from models.forecast.core.forecaster import State, Task, begin_state, check_loads, fill_gaps
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying

if TYPE_CHECKING:
    from torch import Tensor

LONG_DAYS = 14
"""Days of history from which on a load may be a source; with fewer it may be a target."""
_KEPT = 2016  # newest steps of a history whose errors set the quantiles


class AdaptedState(NamedTuple):
    """What an `AdaptedForecaster` carries from step to step.

    Attributes:
        spread: the past errors, as conformal quantiles need them.
        quantiles: (horizon, levels) records/s, the newest forecast.
    """

    spread: ConformalState
    quantiles: Floats


@dataclass(frozen=True)
class AdaptedForecaster(Carrying):
    """An adapted network with conformal quantiles around it; the last value stands in for the first 24 steps.

    Attributes:
        task: what is forecast.
        module: (B, 24) to (B, p) in the target's scale; a `ForecastOnly` or what was exported from one.
        scale: the target's.
        kind: "adapted".
    """

    task: Task
    module: Callable[[Tensor], Tensor]
    scale: DomainScale
    kind: str = "adapted"
    carries: ClassVar[Any] = AdaptedState

    @cached_property
    def _conformal(self) -> Conformal:
        return Conformal(self.horizon, self.levels, self.task.day)

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history (may be empty); its newest 2016 steps' errors set the quantiles.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        state = begin_state(self.task, history)
        if not state.seen:
            return state
        values = fill_gaps(check_loads(history.values), self.task)[-state.seen :]
        known = np.isfinite(history.values)[-state.seen :]
        centres = self._centres(values)
        carried = AdaptedState(self._conformal.start(), np.empty(0))
        for at in range(max(len(values) - _KEPT, 0), len(values)):
            newest = values[max(at + 1 - CONTEXT, 0) : at + 1]
            carried = self._moved(carried, centres[at], newest, float(values[at]) if known[at] else math.nan, at + 1)
        return replace(state, carried=carried)

    def next_carried(self, before: State, after: State, value: float) -> AdaptedState:
        """Return past errors and the quantiles after one more step.

        Args:
            before: the state before the step.
            after: the state after it.
            value: records/s of the step; NaN: missing, no error is scored.
        """
        newest = after.values[-min(after.seen, CONTEXT) :]
        carried = before.carried or AdaptedState(self._conformal.start(), np.empty(0))
        return self._moved(carried, self._centres(newest)[-1], newest, value, after.seen)

    def basis(self, state: State) -> str:
        """Return "adapted", "last value" for the first 24 steps, or "none" while nothing was ever seen."""
        if state.carried is None:
            return "none"
        return self.kind if state.seen >= CONTEXT else "last value"

    def _centres(self, values: Floats) -> Floats:
        """Return (T, p) point forecasts in records/s after each of (T,) steps; the last value for the first 23."""
        centres = np.repeat(values[:, None], self.horizon, axis=1)
        if len(values) >= CONTEXT:
            from models.adapt.training import forecast  # and torch: whoever has no such network does without

            centres[CONTEXT - 1 :] = np.maximum(forecast(self.module, values, self.scale), 0.0)
        return centres

    def _moved(self, carried: AdaptedState, centre: Floats, newest: Floats, value: float, seen: int) -> AdaptedState:
        spread = carried.spread if math.isnan(value) else self._conformal.score(carried.spread, value)
        return AdaptedState(*self._conformal.quantiles(spread, centre, float(newest.mean()), seen))
