"""How the DQN policy may move: near what its baseline (`mpc` at its own price) advises, and what it is paid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory, View
from models.policy.planners.mpc import Mpc, cheapest
from models.policy.planners.planner import backlog

MOVES = (-2, -1, 0, 1, 2, 4)
"""Changes of the target, in executors."""
STAY = MOVES.index(0)
REACH = 1
"""Executors by which the agent may depart from what is advised."""
_MOVES = np.array(MOVES, float)
Mask = NDArray[np.bool_]
ACTION_S = 2.0
"""Executor-seconds that one change of the target costs."""
PARTS = 2
"""Executors (and actions), and violation: learned apart, because they differ by orders of magnitude."""
FACTORS = (0.1, 1.0, 10.0)
"""Of the price, at which the plan is told too: how fast it rises with the price says how sure the peak is."""
SHARE = 0.2
"""Of the agent's price, at which it plans: it counts every moment at which the peak is passed as a moment over the
target, and most of them are over within the look or are made good by the next raise. Chosen on drawn runs."""


def violation_cost_at(price: Floats | float) -> Floats:
    """The baseline's knob at a price of the agent's."""
    return np.log10(SHARE * np.asarray(price, float))


def usable_rps(view: View) -> Floats:
    """(runs,) records/s that arrive; 0 where that is not known."""
    return np.where(np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0), view.arrival_rps, 0.0)


class Advice(NamedTuple):
    """What the baseline says at one look.

    Attributes:
        target: (runs,) executors that it would ask for.
        plan: (runs,) the same without waiting before anything is dropped.
        why: (runs,) flags of `Why`.
        needs: (runs, FACTORS) records/s that are worth providing for at these multiples of the price.
    """

    target: Floats
    plan: Floats
    why: Integers
    needs: Floats


def advise(baseline: Mpc, memory: Memory, view: View) -> tuple[Memory, Advice]:
    """What the baseline carries on, and its advice; without a usable forecast it goes by what is observed."""
    memory, choice = baseline.decide(memory, view)
    rate = usable_rps(view)
    piled = backlog(view, baseline.batch_s) / baseline.catch_up_s
    worth = np.repeat((rate / baseline.busy + piled)[:, None], len(FACTORS), axis=1)
    if view.ahead is not None:
        then = view.ahead.peak(baseline.ahead_s, baseline.lead_s)
        per_rps = view.most / (view.capacity.rps(view.most) * baseline.busy)
        price = 10.0 ** np.asarray(baseline.violation_cost, float) * view.most
        at = [cheapest(then, view.ahead.levels, per_rps, factor * price) for factor in FACTORS]
        ahead = np.stack(at, axis=1) / np.reshape(baseline.busy, (-1, 1)) + piled[:, None]
        worth = np.fmax(worth, ahead)
    plan = np.fmax(choice.observed, choice.forecast)
    return memory, Advice(np.clip(choice.target, view.least, view.most), plan, choice.why, worth)


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
    return view.capacity.executors_for(usable_rps(view) / utilisation, view.least, view.most)[0]


def moved(view: View, moves: Integers, bottom: Floats) -> Floats:
    """(runs,) the target after moves (indices of `MOVES`), not below a floor and within bounds."""
    within = np.clip(view.target + _MOVES[moves], view.least, view.most)
    return np.maximum(within, bottom)


def best(values: Floats, mask: Mask) -> Integers:
    """(runs,) the allowed move of highest value; the first of equals."""
    return np.where(mask, values, -np.inf).argmax(axis=1)


def parts(account: Floats, needed: Floats, most: Floats, seconds: float) -> Floats:
    """(runs, 2) shares of `most * seconds`: executors (and actions) beyond those needed, and violation, as losses.

    With weights (1, price) their sum is `needed / most` less `paid + ACTION_S * changes + price * most * over` as such
    a share: the price says how much a second over the target is worth, in seconds of all executors.

    Args:
        account: (3, runs) of the step: executor-seconds paid, from the request on, seconds over the latency target, and
            changes of the target.
        needed: (runs,) executors that the load of the step needs. No action changes it, so taking it off changes no
            decision, but what is left differs less from run to run and is learned faster.
        most: (runs,) upper bound of the executors.
        seconds: length of the step.
    """
    paid, over, changes = account
    executors = paid + ACTION_S * changes - needed * seconds
    return np.stack([-executors / (most * seconds), -over / seconds], axis=1)
