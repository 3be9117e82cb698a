"""Champion selection: candidates are compared by rolling origin on the newest part of a history.

One candidate is the default and is kept unless another is significantly better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models.forecast.core import scores
from models.forecast.core.bootstrap import ratio_bound
from models.forecast.core.forecaster import Forecaster, Task, check_loads
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.selection.backtest import Backtest, roll

Fit = Callable[[Task, Series], Forecaster]
NEWEST = 0.2
"""Share of the history that the candidates are compared on."""
MOST = 1000
"""Steps that the candidates are compared on, at most, unless half a day has more."""
FEWEST = 24
"""With fewer steps than this, or half a day has, to compare on, the default is taken: hours tell little of a day."""
TIE = 0.01
"""Share by which a candidate must undercut the loss of the best simpler one to be preferred to it."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate's scores on the newest steps, in records/s.

    Attributes:
        rmse: of the median one step ahead.
        pinball: mean over all steps ahead.
        errors: (T,) one step ahead, actual minus median; NaN where unknown.
        losses: (T,) square roots of the mean pinball loss of what was forecast at each step.
    """

    rmse: float
    pinball: float
    errors: Floats
    losses: Floats

    @property
    def loss(self) -> float:
        """Geometric mean of `rmse` and `pinball`, by which candidates are compared."""
        return math.sqrt(self.rmse * self.pinball)

    def significantly_better(self, other: Trial, rivals: int = 1) -> bool:
        """Return whether both the squared errors one step ahead and the squared `losses` are significantly lower.

        The 97.5 % quantile of the ratio of their means to the other's must be below 1, over 2000 paired moving-block
        draws.

        Args:
            other: scores on the same steps; of another number of steps: numpy's ValueError.
            rivals: number of comparisons made; the remaining 2.5 % are divided by it (Bonferroni).

        Returns:
            False also where fewer than 24 errors are known in both.
        """
        if np.isfinite(self.errors - other.errors).sum() < FEWEST:
            return False
        pairs = ((self.errors, other.errors), (self.losses, other.losses))
        return all(ratio_bound(mine**2, theirs**2, rivals) < 1 for mine, theirs in pairs)


@dataclass(frozen=True)
class ChampionChoice:
    """The chosen forecaster and the trials it was chosen by.

    Attributes:
        name: of the candidate.
        forecaster: fitted to the whole history.
        trials: of every candidate that could be fitted to the older steps, simplest first; empty where the history is
            too short, or no record came in its newest steps.
        skipped: by name, why a candidate could not be fitted.
    """

    name: str
    forecaster: Forecaster
    trials: dict[str, Trial]
    skipped: dict[str, str] = field(default_factory=dict)


def choose_champion(task: Task, history: Series, candidates: Mapping[str, Fit], default: str) -> ChampionChoice:
    """Choose which candidate is to serve: fit each to the older steps, score it on the newest, refit the winner on all.

    The newest fifth of the history is held out, at most 1000 steps, or half a day where that is more; with fewer than
    24 there, or less than half a day, or no load above 0, the default is taken without a trial. Another candidate wins
    only if significantly better than the default (`Trial.significantly_better`), or if the default has no score. A
    candidate whose fit raises SeriesError is skipped; any other error comes through.

    Args:
        task: what is forecast.
        history: records/s in the task's steps, all that may be used; NaN: missing.
        candidates: functions that fit each candidate, by name, simplest first.
        default: name of the candidate that stays in doubt.

    Returns:
        Name, forecaster fitted to the whole history, scores by name, and by name why a candidate was skipped.

    Raises:
        SeriesError: a load is negative or infinite, or neither winner nor default can be fitted to the whole history.
        KeyError: `default` is not among the candidates, and no other wins.
    """
    check_loads(history.values)
    held = min(int(NEWEST * len(history)), max(MOST, task.day // 2))
    trials: dict[str, Trial] = {}
    skipped: dict[str, str] = {}
    # Of nothing, a repetition errs by exactly 0, and would be surely better than what errs by a rounding.
    if held >= max(FEWEST, task.day // 2) and (history.values[-held:] > 0).any():
        older, newest = history.split(held)
        for name, fit in candidates.items():
            try:
                trials[name] = _trial(roll(fit(task, older), older, newest))
            except SeriesError as error:
                skipped[name] = str(error)
    first, rivals = trials.get(default), max(len(trials) - 1, 1)
    better = {name: trial for name, trial in trials.items() if name != default and _displaces(trial, first, rivals)}
    while best := simplest_best(better):
        try:
            return ChampionChoice(best, candidates[best](task, history), trials, skipped)
        except SeriesError as error:  # what could be fitted to the older steps need not be to all of them
            skipped[best] = str(error)
            del better[best]
    return ChampionChoice(default, candidates[default](task, history), trials, skipped)


def simplest_best(trials: Mapping[str, Trial]) -> str:
    """Return the name of the candidate with the least loss, preferring simpler ones; "" where none has a finite loss.

    The loss is √(RMSE one step ahead · mean pinball loss), records/s. A candidate displaces an earlier, simpler one
    only where its loss is lower by more than 1 %.

    Args:
        trials: by name, simplest first.
    """
    best = ""
    for name, trial in trials.items():
        if math.isfinite(trial.loss) and (not best or trial.loss < (1 - TIE) * trials[best].loss):
            best = name
    return best


def _displaces(trial: Trial, default: Trial | None, rivals: int) -> bool:
    if default is None or not math.isfinite(default.loss):
        return math.isfinite(trial.loss)
    return trial.loss < default.loss and trial.significantly_better(default, rivals)


def _trial(made: Backtest) -> Trial:
    actual, median = made.actual[:, 0], made.median[:, 0]
    pinball = float(np.mean(made.pinball_by_horizon()))
    return Trial(scores.rmse(actual, median), pinball, actual - median, np.sqrt(made.losses()))
