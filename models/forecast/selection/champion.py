"""The choice of a champion: by rolling origin on the newest part of a history, the naive forecasts included.

One candidate is the default, and keeps its place unless another is surely better: the newest part of one history is a
single witness, and where loads are bursty it says little about the weeks to come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models.forecast.core import scores
from models.forecast.core.bootstrap import at_most
from models.forecast.core.forecaster import Forecaster, Task, check_load
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.selection.backtest import Backtest, roll

Fit = Callable[[Task, Series], Forecaster]
NEWEST = 0.2
"""Share of the history that the candidates are compared on."""
MOST = 1000
"""More steps than this say little more, and take long."""
FEWEST = 24
"""With fewer steps than this to compare on, nothing is compared."""
TIE = 0.01
"""Of candidates that are surely better than the default, one must be better by this share than every simpler one."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What a candidate was worth on the newest steps, in records/s.

    Attributes:
        rmse: one step ahead.
        pinball: mean over all steps ahead.
        errors: (T,) one step ahead, actual minus median; NaN where unknown.
        losses: (T,) roots of the mean pinball loss of what was forecast at each step.
    """

    rmse: float
    pinball: float
    errors: Floats
    losses: Floats

    @property
    def loss(self) -> float:
        """Geometric mean of both errors; what is compared."""
        return math.sqrt(self.rmse * self.pinball)

    def surely_better(self, other: Trial, rivals: int = 1) -> bool:
        """Whether both errors are lower, one step ahead and over all steps, by a paired block bootstrap.

        At 95 % for all rivals together (`bootstrap.at_most`).
        """
        if np.isfinite(self.errors - other.errors).sum() < FEWEST:
            return False
        pairs = ((self.errors, other.errors), (self.losses, other.losses))
        return all(at_most(mine**2, theirs**2, rivals) < 1 for mine, theirs in pairs)


@dataclass(frozen=True)
class ChampionChoice:
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


def choose(task: Task, history: Series, candidates: Mapping[str, Fit], default: str) -> ChampionChoice:
    """Fit every candidate to the older steps, step it through the newest, and fit the chosen one to all of them.

    Args:
        task: what is forecast.
        history: all that may be looked at.
        candidates: by name, simplest first.
        default: the candidate that is taken unless another is surely better.

    Raises:
        SeriesError: a load is negative or infinite, or no candidate can be fitted to the whole history.
    """
    check_load(history.values)
    held = min(int(NEWEST * len(history)), MOST)
    trials: dict[str, Trial] = {}
    skipped: dict[str, str] = {}
    if held >= FEWEST:
        older, newest = history.split(held)
        for name, fit in candidates.items():
            try:
                trials[name] = _trial(roll(fit(task, older), older, newest))
            except SeriesError as error:
                skipped[name] = str(error)
    first, rivals = trials.get(default), max(len(trials) - 1, 1)
    better = {name: trial for name, trial in trials.items() if name != default and _displaces(trial, first, rivals)}
    while best := simplest(better):
        try:
            return ChampionChoice(best, candidates[best](task, history), trials, skipped)
        except SeriesError as error:  # what could be fitted to the older steps need not be to all of them
            skipped[best] = str(error)
            del better[best]
    return ChampionChoice(default, candidates[default](task, history), trials, skipped)


def simplest(trials: Mapping[str, Trial]) -> str:
    """The name of the first candidate that none after it beats by `TIE`; "" where none has a finite loss."""
    best = ""
    for name, trial in trials.items():
        if math.isfinite(trial.loss) and (not best or trial.loss < (1 - TIE) * trials[best].loss):
            best = name
    return best


def _displaces(trial: Trial, default: Trial | None, rivals: int) -> bool:
    if default is None or not math.isfinite(default.loss):
        return math.isfinite(trial.loss)
    return trial.loss < default.loss and trial.surely_better(default, rivals)


def _trial(made: Backtest) -> Trial:
    actual, median = made.actual[:, 0], made.median[:, 0]
    pinball = float(np.mean(made.pinball_by_horizon()))
    return Trial(scores.rmse(actual, median), pinball, actual - median, np.sqrt(made.losses()))
