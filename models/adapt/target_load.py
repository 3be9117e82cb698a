"""A load with a short history, divided for fitting, selecting and the gate; and forecast errors on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.adapt.scale import CONTEXT
from models.forecast.core.series import Floats

ADAPT, SELECT = 0.6, 0.2
"""Shares of the target's history, in time order; the rest is the gate's part."""


@dataclass(frozen=True, eq=False)
class TargetLoad:
    """A load with a short history, and what came after it where that is known.

    The history is split in time order: `ADAPT`, `SELECT`, and the gate's part, on which candidates are compared.

    Attributes:
        values: (T,) records/s without gaps.
        history: how many of them, from the first on, a model may learn from.
        day: steps per day.
        horizon: steps ahead, p.
    """

    values: Floats
    history: int
    day: int
    horizon: int

    @property
    def past(self) -> Floats:
        """(history,) records/s: what a model may learn from."""
        return self.values[: self.history]

    @property
    def gate_begin(self) -> int:
        """Index of the first step of the gate's part."""
        return int((ADAPT + SELECT) * self.history)

    @cached_property
    def last_value_errors(self) -> Floats:
        """(T, p) records/s: errors of repeating the last value."""
        return self.forecast_errors(np.repeat(self.values[CONTEXT - 1 :, None], self.horizon, axis=1))

    @cached_property
    def unit(self) -> Floats:
        """(p,) records/s: RMSE of repeating the last value over the history, the unit of errors per step ahead."""
        past = self.last_value_errors[: self.history - self.horizon]
        return np.asarray(np.maximum(np.sqrt(np.nanmean(past**2, axis=0)), 1e-9 * max(float(self.past.mean()), 1e-9)))

    def forecast_errors(self, forecasts: Floats) -> Floats:
        """Return outcomes minus forecasts; row t holds the errors of the forecast made after step t.

        Args:
            forecasts: (N, p) records/s, made after the newest N of the T steps.

        Returns:
            (T, p) records/s; NaN in the rows before the first forecast and where the outcome lies beyond the end.

        Raises:
            ValueError: numpy's, where N is above T, or p is not the horizon.
        """
        padded = np.append(self.values, np.full(self.horizon, np.nan))
        errors = np.lib.stride_tricks.sliding_window_view(padded[1:], self.horizon).copy()
        first = len(errors) - len(forecasts)
        errors[:first] = np.nan
        errors[first:] -= forecasts
        return errors

    def loss(self, errors: Floats) -> Floats:
        """Return (T,) mean squares over the steps ahead of (T, p) errors in `unit`; NaN where one is missing."""
        return np.asarray(((errors / self.unit) ** 2).mean(axis=1))

    def gate_rows(self, errors: Floats) -> Floats:
        """Return a copy of (T, p) errors, NaN in rows whose p outcomes are not all in the gate's part (last 20 %)."""
        kept = np.full_like(errors, np.nan)
        rows = slice(self.gate_begin - 1, self.history - self.horizon)
        kept[rows] = errors[rows]
        return kept


@dataclass(frozen=True, eq=False)
class CandidateErrors:
    """Forecast errors of one kind of model on a target, records/s.

    Attributes:
        errors: (T, p) of the model fitted on the whole history; NaN where there is none.
        gate: (T, p) of the same kind of model fitted without the gate's part; NaN outside its rows.
        out_of_sample: whether `errors` within the history are of fits that had not seen the outcome.
    """

    errors: Floats
    gate: Floats
    out_of_sample: bool = False
