"""What the agent can do: change the target by a few executors, within bounds and not below what observed load needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.dqn.agent.baseline import Advice
from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import View

MOVES = (-2, -1, 0, 1, 2, 4)
"""Changes of the target, in executors."""
STAY = MOVES.index(0)
REACH = 1
"""Executors by which the agent may depart from what is advised."""

_MOVES = np.array(MOVES, float)
Mask = NDArray[np.bool_]


def allowed(target: Floats, least: Floats, most: Floats) -> Mask:
    """(runs, 6) moves that keep the target within its bounds; staying always is one of them."""
    after = target[:, None] + _MOVES
    mask: Mask = (after >= least[:, None]) & (after <= most[:, None])
    mask[:, STAY] = True
    return mask


def near_advice(mask: Mask, target: Floats, advice: Advice) -> Mask:
    """(runs, 6) those that end within `REACH` of what is advised; where there is none, the nearest to it."""
    after = target[:, None] + _MOVES
    low, high = np.minimum(advice.plan, advice.target) - REACH, advice.target + REACH
    near: Mask = mask & (after >= low[:, None]) & (after <= high[:, None])
    lost = ~near.any(axis=1)
    near[lost, nearest(mask, target, advice.target)[lost]] = True
    return near


def nearest(mask: Mask, target: Floats, advised: Floats) -> Integers:
    """(runs,) the allowed move that ends nearest to what is advised; the higher of equals."""
    off = np.abs(target[:, None] + _MOVES - advised[:, None] - 0.1)
    return np.where(mask, off, np.inf).argmin(axis=1)


def floor(view: View, utilisation: Floats | float) -> Floats:
    """(runs,) fewest executors that carry the observed rate at this share of capacity; the lower bound without one."""
    usable = np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0)
    rate = np.where(usable, view.arrival_rps, 0.0) / utilisation
    return view.capacity.executors_for(rate, view.least, view.most)[0]


def moved(view: View, moves: Integers, bottom: Floats) -> Floats:
    """(runs,) the target after moves (indices of `MOVES`), not below a floor and within bounds."""
    within = np.clip(view.target + _MOVES[moves], view.least, view.most)
    return np.maximum(within, bottom)


def best(values: Floats, mask: Mask) -> Integers:
    """(runs,) the allowed move of highest value; the first of equals."""
    return np.where(mask, values, -np.inf).argmax(axis=1)
