"""The choice of a champion: by rolling origin on the newest part of a history, the naive forecasts included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models.forecast.backtest import roll
from models.forecast.forecaster import Forecaster, Task
from models.forecast.series import Series, SeriesError

Fit = Callable[[Task, Series], Forecaster]
NEWEST = 0.2
"""Share of the history that the candidates are compared on."""
MOST = 1000
"""More steps than this say little more, and take long."""
FEWEST = 24
"""With fewer steps than this to compare on, nothing is compared."""
TIE = 0.01
"""A candidate must be better by this share than every simpler one."""


@dataclass(frozen=True)
class Trial:
    """What a candidate was worth on the newest steps, in records/s.

    Attributes:
        rmse: one step ahead.
        pinball: mean over all steps ahead.
        loss: geometric mean of both; what is compared.
    """

    rmse: float
    pinball: float
    loss: float


@dataclass(frozen=True)
class Choice:
    """The champion and why.

    Attributes:
        name: of the candidate.
        forecaster: fitted to the whole history.
        trials: of every candidate that could be fitted, simplest first; empty where the history is too short.
        skipped: why a candidate could not be fitted.
    """

    name: str
    forecaster: Forecaster
    trials: dict[str, Trial]
    skipped: dict[str, str] = field(default_factory=dict)


def choose(task: Task, history: Series, candidates: Mapping[str, Fit], default: str) -> Choice:
    """Fit every candidate to the older steps, step it through the newest, and fit the best to all of them.

    Args:
        task: what is forecast.
        history: all that may be looked at.
        candidates: by name, the simplest first: it wins where none is better by `TIE`.
        default: the candidate that is taken where there are too few steps to compare on, or none can be compared.

    Raises:
        SeriesError: the default cannot be fitted either.
    """
    held = min(int(NEWEST * len(history)), MOST)
    trials: dict[str, Trial] = {}
    skipped: dict[str, str] = {}
    if held >= FEWEST:
        older, newest = history.split(held)
        for name, fit in candidates.items():
            try:
                trials[name] = _trial(fit(task, older), older, newest)
            except SeriesError as error:
                skipped[name] = str(error)
    able = dict(trials)
    while name := simplest(able):
        try:
            return Choice(name, candidates[name](task, history), trials, skipped)
        except SeriesError as error:  # what could be fitted to the older steps need not be to all of them
            skipped[name] = str(error)
            del able[name]
    return Choice(default, candidates[default](task, history), trials, skipped)


def simplest(trials: Mapping[str, Trial]) -> str:
    """The name of the first candidate that none after it beats by `TIE`; "" where none has a finite loss."""
    best = ""
    for name, trial in trials.items():
        if math.isfinite(trial.loss) and (not best or trial.loss < (1 - TIE) * trials[best].loss):
            best = name
    return best


def _trial(forecaster: Forecaster, older: Series, newest: Series) -> Trial:
    made = roll(forecaster, older, newest)
    rmse = made.figures()["rmse_h1"]
    pinball = float(np.mean(made.pinball_by_horizon()))
    return Trial(rmse, pinball, math.sqrt(rmse * pinball))
