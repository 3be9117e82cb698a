"""What came of a decision, and what came of several in a row: returns over n steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.dqn.learner.replay import Transitions, picked
from models.policy.core.capacity import Floats, Integers


class StepReturn(NamedTuple):
    """What came of one decision of every run.

    Attributes:
        gained: (runs, K) the reward's parts.
        after: (runs, F) observation it led to, before any new beginning.
        mask: (runs, A) actions allowed there.
        ended: (runs,) whether that state is terminal; a time limit is no end.
        cut: (runs,) whether the run begins anew from here, for whatever reason.
    """

    gained: Floats
    after: np.ndarray
    mask: np.ndarray
    ended: np.ndarray
    cut: np.ndarray


def summed(path: list[tuple[np.ndarray, Integers, StepReturn, Floats]], gamma: float) -> Transitions:
    """Transitions from the first state of a path to its last; runs that began anew on the way are left out.

    A run that ended on the way counts until its end.
    """
    seen, moves, first, weight = path[0]
    gained, live = first.gained.copy(), ~first.ended
    whole, factor = ~first.cut | first.ended, 1.0
    after, mask = first.after, first.mask
    for number, (_, _, outcome, _) in enumerate(path[1:], start=2):
        factor *= gamma
        gained = gained + factor * live[:, None] * outcome.gained
        after = np.where(live[:, None], outcome.after, after)
        mask = np.where(live[:, None], outcome.mask, mask)
        live = live & ~outcome.ended
        whole = whole & (~live | ~outcome.cut | (number == len(path)))
    if len(path) == 1:
        whole = np.ones(len(moves), bool)
    carried = live * gamma ** len(path)
    made = Transitions(seen, moves, gained, after, mask, carried, weight)
    return picked(made, whole)
