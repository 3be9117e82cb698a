"""Naive forecasts: same time last week or yesterday, or the last value, spread by their past errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.forecast.core.forecaster import ERRORS, State, Task, begin_state
from models.forecast.core.residuals import FEW, ResidualWindow, SortedWindows
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying


class Carried(NamedTuple):
    """The newest errors of a `Naive` forecast, sorted; they follow from the newest values and are not serialised.

    Steps that were filled have none: a fill repeats the value that the forecast repeats, so its error would be 0.

    Attributes:
        behind: (W,) steps back that each window of errors compares with.
        errors: W windows of at most `ERRORS`, records/s.
    """

    behind: tuple[int, ...]
    errors: SortedWindows


@dataclass(frozen=True)
class Naive(Carrying):
    """Seasonal naive forecast, with the quantiles of its past errors around it.

    Attributes:
        task: what is forecast.
        seasonal: repeat the same time last week, else yesterday, else the last value, as far as the history reaches;
            False: always the last value.
        weekly: whether last week is used; False: the season is a day.
    """

    task: Task
    seasonal: bool = True
    weekly: bool = True

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Return "seasonal_naive", "yesterday" or "last_value"."""
        if not self.seasonal:
            return "last_value"
        return "seasonal_naive" if self.weekly else "yesterday"

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history, which may be empty.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        return begin_state(self.task, history)

    def next_carried(self, before: State, after: State, value: float) -> Carried:
        """Return the newest errors (at most 2000 per distance looked back), sorted, in records/s, after one more step.

        Args:
            before: the state before the step; where it carries no such errors, they are computed from `after` alone.
            after: the state after it.
            value: not used; the newest of `after.values` counts, unless it was filled.
        """
        behind = tuple(dict.fromkeys(self._behinds(after)))
        if not isinstance(before.carried, Carried) or before.carried.behind != behind:
            return _carried(after, behind)
        gone, fresh = (np.full(len(behind), math.nan) for _ in range(2))
        for i, back in enumerate(behind):
            had, has = _count(before, back), _count(after, back)
            if has:
                fresh[i] = _error(after, back, 1)
            if had and had == has:
                gone[i] = _error(before, back, had)
        return Carried(behind, before.carried.errors.replace_each(gone, fresh))

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN while nothing was ever seen.

        The median is the repeated value. Quantile q is that value plus quantile q of the newest errors (at most 2000)
        minus their median, at least 0; while no error is known, every quantile is the repeated value.
        """
        if state.seen == 0:
            return np.full((self.horizon, len(self.levels)), np.nan)
        seen = state.values[-min(state.seen, len(state.values)) :]
        lag = self._lag(state.seen)
        ahead = np.arange(self.horizon)
        centre = seen[len(seen) - lag + ahead % lag]
        each = self._behinds(state)
        behind = tuple(dict.fromkeys(each))  # most horizons look equally far back
        carried = state.carried if isinstance(state.carried, Carried) else _carried(state, behind)
        spread = np.nan_to_num(carried.errors.spread(self.levels))[[behind.index(back) for back in each]]
        return np.maximum(centre[:, None] + spread, 0.0)

    def quantiles_around(self, centre: Floats, past: ResidualWindow, state: State) -> Floats:
        """Return the quantiles around another forecaster's point forecast: (horizon, levels) records/s, at least 0.

        Args:
            centre: (horizon,) records/s; of another length: numpy's ValueError.
            past: that forecaster's errors; added are their quantiles minus their median, or, while fewer than 24 are
                known at the farthest step ahead, the naive forecast's quantiles minus their median.
            state: the newest steps, for the naive forecast.
        """
        spread = past.spread(self.levels)
        if spread is None:
            quantiles = self.quantiles_of(state)
            spread = quantiles - quantiles[:, [self.levels.index(0.5)]]
        around: Floats = np.maximum(centre[:, None] + spread, 0.0)
        return around

    def basis(self, state: State) -> str:
        """Name what is repeated, as far as the steps seen reach back and `seasonal` and `weekly` allow.

        Returns:
            "same time last week", "same time yesterday", "last value", or "none" while nothing was ever seen.
        """
        if state.seen == 0:
            return "none"
        lag = self._lag(state.seen)
        if lag == 1 and not self.seasonal:
            return "last value"
        return {self.task.week: "same time last week", self.task.day: "same time yesterday"}.get(lag, "last value")

    def _lag(self, seen: int) -> int:
        return next(lag for lag in self._lags() if seen >= lag)

    def _lags(self) -> tuple[int, ...]:
        """Return the lags in steps that may be repeated, the longest first."""
        seasons = (self.task.week, self.task.day) if self.weekly else (self.task.day,)
        return (*seasons, 1) if self.seasonal else (1,)

    def _behinds(self, state: State) -> list[int]:
        """Return for 1 to `horizon` steps ahead how many steps back the errors compare.

        That is as far back as the forecast looks, or less far where fewer than `FEW` errors would be known.
        """
        seen, measured = min(state.seen, len(state.values)), np.flatnonzero(~state.filled)
        least = len(state.values) - measured[-FEW] if len(measured) >= FEW else math.inf  # steps with `FEW` measured
        lags = [lag for lag in self._lags() if seen >= lag]
        each = [[lag * -(-h // lag) for lag in lags] for h in range(1, self.horizon + 1)]
        return [next((behind for behind in whole if min(ERRORS, seen - behind) >= least), whole[-1]) for whole in each]


def _carried(state: State, behind: tuple[int, ...]) -> Carried:
    """Compute and sort the newest errors of repeating the value of each of these numbers of steps before."""
    values, counts = state.values, [_count(state, back) for back in behind]
    outcomes = np.where(state.filled, math.nan, values)
    errors = [
        (outcomes[back:] - values[:-back])[len(values) - back - n :] for back, n in zip(behind, counts, strict=True)
    ]
    return Carried(behind, SortedWindows.sort(errors, ERRORS))


def _error(state: State, behind: int, nth: int) -> float:
    """Return the error of repeating the value `behind` steps before, of the nth newest step; NaN if it was filled."""
    return math.nan if state.filled[-nth] else float(state.values[-nth] - state.values[-nth - behind])


def _count(state: State, behind: int) -> int:
    """Return of how many newest steps the value `behind` steps before is known, at most `ERRORS`."""
    return max(min(ERRORS, min(state.seen, len(state.values)) - behind), 0)
