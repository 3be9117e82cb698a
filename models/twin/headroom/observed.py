"""Actions on the planner's parameters chosen by what is observed, as learned from the outcomes of all of them.

A stronger teacher than a DQN's: for every state each action's outcome is known, no exploration and no value that is
estimated from another one. What a forest makes of that for loads it never saw is about what any learner can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.experiment.scenario import Scenario
from models.twin.headroom.parts import PartOutcomes

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor

STATE = {
    "load": ("need", "need_ago", "need_of_highest", "median", "unsure", "most_unsure", "lag", "target", "ready"),
    "budget": ("late_lately", "late_so_far"),
    "ages": ("starting", "oldest", "waited"),
    "capacity": ("believed", "believed_ago", "bend"),
    "errors": ("error", "error_size", "error_lasting", "error_over"),
}
"""What is observed, by kind."""
NEW = ("ages", "capacity", "errors")
"""Kinds that the planner knows nothing of."""
LATELY, LONG = 12.0, 48.0
"""Lead times over which averages are taken, and over which persistence and the capacity's bend are."""
TREES, FEWEST, SURE = 60, 8, 0.5
"""Trees of the forest, fewest states in a leaf, and standard deviations of the trees by which an action must gain."""


def observed_states(parts: PartOutcomes, scenario: Scenario, part_s: float) -> Floats:
    """Return (parts, F) what is observed at the beginning of each part, in the order of `STATE`, without a unit.

    Executors are shares of the most, times are in lead times, rates are logarithms of ratios. `bend` is the slope of
    the believed service rate of a slot in the executors, both logarithms: 0 where capacity is linear. Errors are the
    highest rate of a lead time over the median that was forecast for it: mean, size, correlation with that of a lead
    time earlier, and share above the 0.9 quantile.
    """
    setup, every = scenario.setup, scenario.setup.looks.every_s
    lead, most = max(round(setup.lead_s / every), 1), float(setup.twin_job.most)
    ready, starting, target, lag, rps, late = parts.trace[: len(parts.ahead)].T
    median, upper, top, rate = np.maximum(parts.ahead, 1e-9).T
    highest = np.array([rate[max(i - lead, 0) : i + 1].max() for i in range(len(rate))])
    errors, over = np.log(highest[lead:] / median[:-lead]), highest[lead:] > upper[:-lead]
    waiting = starting > 0
    since = np.maximum.accumulate(np.where(waiting, -1, np.arange(len(rate))))
    total = np.concatenate([[0.0], np.cumsum(starting)])
    rows = []
    for part in range(len(parts.late)):
        i = min(round((scenario.warm_s + part * part_s) / every), len(rate) - 1)
        lately, long = max(i - round(LATELY * lead), 0), max(i - round(LONG * lead), 0)
        known = slice(max(lately - lead, 0), max(i - lead, 1))
        past = errors[max(long - lead, 0) : max(i - lead, 1)]
        new, old = past[lead:], past[:-lead]
        rows.append([
            rate[i] / rps[i] / most, np.log(rate[i] / rate[max(i - lead, 0)]),
            np.log(rate[i] / rate[lately : i + 1].max()), np.log(median[i] / rate[i]), np.log(upper[i] / median[i]),
            np.log(top[i] / median[i]), np.log1p(lag[i] / rate[i]), target[i] / most, ready[i] / most,
            late[lately : i + 1].mean() / every, late[: i + 1].mean() / every,
            starting[i] / most, (i - since[i]) / lead, (total[i] - total[max(since[i], 0)]) / lead / most,
            np.log(rps[i] / rps[0]), np.log(rps[i] / rps[lately]),
            _slope(np.log(np.maximum(ready[long : i + 1], 1)), np.log(rps[long : i + 1])),
            errors[known].mean(), np.abs(errors[known]).mean(), _slope(old, new), over[known].mean(),
        ])  # fmt: skip
    return np.nan_to_num(np.array(rows), posinf=0.0, neginf=0.0)


def _slope(x: Floats, y: Floats) -> float:
    """Least-squares slope of y in x, 0 where x hardly varies."""
    if len(x) < 2 or x.std() < 1e-3:
        return 0.0
    return float(((x - x.mean()) * (y - y.mean())).mean() / x.var())


def columns_without(*kinds: str) -> Integers:
    """Return the columns of `observed_states` but for those of some kinds of `STATE`."""
    names = [kind for kind, columns in STATE.items() for _ in columns]
    return np.flatnonzero([kind not in kinds for kind in names])


class Outcomes(NamedTuple):
    """What is expected of every action in a state, beside the first action.

    Attributes:
        forest: whose trees predict late seconds, then executor-seconds, of all actions, in units of `size`.
        size: (2 A,) standard deviation of each over the states that were learned from.
        prices: (A,) executor-seconds that a late second was worth to whoever takes an action of that price: between its
            neighbours so many were paid for each that was saved.
    """

    forest: ExtraTreesRegressor
    size: Floats
    prices: Floats


def learn_outcomes(
    states: Sequence[Floats], parts: Sequence[PartOutcomes], columns: Integers, rungs: Floats, seed: int
) -> Outcomes:
    """Learn what each action costs in a state, and at which price of a late second each price of the planner is best.

    Args:
        states: (parts, F) of each scenario.
        parts: of runs with one action each.
        columns: of the states that may be looked at.
        rungs: (N,) the planner's prices, of the first N actions.
        seed: of the forest.
    """
    late, paid = (np.concatenate([getattr(one, of) for one in parts]) for of in ("late", "paid"))
    outcome = np.hstack([late - late[:, :1], paid - paid[:, :1]])
    spread = outcome.std(axis=0)  # a forest looks for splits that tell most of all outcomes together
    size = np.where(spread > 0, spread, 1.0)
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(TREES, min_samples_leaf=FEWEST, max_features=0.5, random_state=seed)
    forest.fit(np.concatenate(states)[:, columns], outcome / size)
    order = np.argsort(rungs)
    saved, more = (np.gradient(each.sum(axis=0)[order]) for each in (-late, paid))
    prices = np.empty(len(rungs))
    prices[order] = np.maximum.accumulate(np.maximum(more, 0.0) / np.maximum(saved, 1e-3))
    return Outcomes(forest, size, prices)


def choose_observed(learned: Outcomes, states: Floats, columns: Integers, allowed: Sequence[Integers]) -> Integers:
    """Return (parts, N) indices of the actions that are expected to cost less than the planner's own, by its price.

    An action is taken only if it is cheaper by more than `SURE` standard deviations of what the trees say of it.

    Args:
        learned: of `learn_outcomes`.
        states: (parts, F).
        columns: as the forest was given.
        allowed: for each of the N prices the indices of the actions that may take the place of its own.
    """
    seen = states[:, columns]
    trees = np.stack([tree.predict(seen) for tree in learned.forest.estimators_]) * learned.size
    late, paid = np.split(trees, 2, axis=2)
    chosen = np.empty((len(states), len(allowed)), np.int64)
    for own, actions in enumerate(allowed):
        gain = (paid + learned.prices[own] * late)[:, :, [own]] - (paid + learned.prices[own] * late)[:, :, actions]
        sure = gain.mean(axis=0) - SURE * gain.std(axis=0)
        best = sure.argmax(axis=1)
        chosen[:, own] = np.where(sure.max(axis=1) > 0, actions[best], own)
    return chosen
