"""What the agent can do: change the target by a few executors, within bounds and not below what observed load needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.policy.capacity import Floats, Integers
from models.policy.view import View

MOVES = (-2, -1, 0, 1, 2, 4)
"""Changes of the target, in executors."""
STAY = MOVES.index(0)
FLOOR_UTILISATION = 1.0
"""The floor is what carries the observed rate at this share of capacity."""

_MOVES = np.array(MOVES, float)
Mask = NDArray[np.bool_]


def allowed(target: Floats, least: Floats, most: Floats) -> Mask:
    """(runs, 6) moves that keep the target within its bounds; staying always is one of them."""
    after = target[:, None] + _MOVES
    mask: Mask = (after >= least[:, None]) & (after <= most[:, None])
    mask[:, STAY] = True
    return mask


def floor(view: View) -> Floats:
    """(runs,) fewest executors that sustain the observed rate; the lower bound where that is no number."""
    usable = np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0)
    rate = np.where(usable, view.arrival_rps, 0.0) / FLOOR_UTILISATION
    return view.capacity.executors_for(rate, view.least, view.most)[0]


def moved(view: View, moves: Integers) -> Floats:
    """(runs,) the target after moves (indices of `MOVES`), not below the floor and within bounds."""
    within = np.clip(view.target + _MOVES[moves], view.least, view.most)
    held: Floats = np.maximum(within, floor(view))
    return held


def best(values: Floats, mask: Mask) -> Integers:
    """(runs,) the allowed move of highest value; the first of equals."""
    highest: Integers = np.where(mask, values, -np.inf).argmax(axis=1)
    return highest
