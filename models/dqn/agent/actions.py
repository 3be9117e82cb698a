"""The moves of the DQN policy, near the advice of its baseline (`mpc` at its own price), and their reward."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.backlog import backlog
from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory, View
from models.policy.planners.mpc import Mpc, cheapest_capacity

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
"""Parts of the reward, executors (and actions) and violation; learned apart, as they differ by orders of magnitude."""
FACTORS = (0.1, 1.0, 10.0)
"""Multiples of the price at which `Advice.needs` is computed: its rise shows how certain the peak is."""
SHARE = 0.2
"""Share of the agent's price at which the baseline plans, chosen on drawn runs; below 1 because the baseline counts
every exceeded peak as lateness, and most are over by the next decision or are met by the next raise."""


def violation_cost_at(price: Floats | float) -> Floats:
    """Return the `violation_cost` of the baseline (`Mpc`) for a price of the agent: log10 of 0.2 times the price."""
    return np.log10(SHARE * np.asarray(price, float))


def usable_rps(view: View) -> Floats:
    """Return (runs,) observed arrivals in records/s; 0 where they are unknown or negative."""
    return np.where(np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0), view.arrival_rps, 0.0)


class Advice(NamedTuple):
    """What the baseline policy (`mpc`, of planned capacity without training) advises at one decision.

    Attributes:
        target: (runs,) executors that it would ask for.
        plan: (runs,) executors it needs now, without the delay before executors are dropped.
        why: (runs,) flags of `Why`.
        needs: (runs, 3) records/s worth providing for, at 0.1, 1 and 10 times the price (`FACTORS`).
    """

    target: Floats
    plan: Floats
    why: Integers
    needs: Floats


def advise(baseline: Mpc, memory: Memory, view: View) -> tuple[Memory, Advice]:
    """Run the baseline policy, and compute the load worth providing for at 0.1, 1 and 10 times a violation's price.

    That load (`Advice.needs`, records/s) is the capacity that `cheapest_capacity` finds for the forecast's highest load
    from `lead_s` to `ahead_s` seconds ahead, over the planned utilisation, plus the backlog over `catch_up_s`. It is
    never below the same of the observed arrivals, which stand alone where the forecast is None or NaN.

    Args:
        baseline: with the price of each run.
        memory: of `baseline.fresh` or the last call, for the same runs; not changed.
        view: of (runs,) jobs; arrivals that are NaN or negative count as 0.

    Returns:
        The baseline's memory after this decision, and its advice, the target clipped to the runs' bounds.

    Raises:
        KeyError: a memory that is not the baseline's.
    """
    memory, choice = baseline.decide(memory, view)
    rate = usable_rps(view)
    piled = backlog(view.arrival_rps, view.lag_records, baseline.batch_s) / baseline.catch_up_s
    worth = np.repeat((rate / baseline.busy + piled)[:, None], len(FACTORS), axis=1)
    if view.ahead is not None:
        then = view.ahead.peak_rps(baseline.ahead_s, baseline.lead_s)
        per_rps = view.most / (view.capacity.sustained_rps(view.most) * baseline.busy)
        price = 10.0 ** np.asarray(baseline.violation_cost, float) * view.most
        at = [cheapest_capacity(then, view.ahead.levels, per_rps, factor * price) for factor in FACTORS]
        ahead = np.stack(at, axis=1) / np.reshape(baseline.busy, (-1, 1)) + piled[:, None]
        worth = np.fmax(worth, ahead)
    plan = np.fmax(choice.observed, choice.forecast)
    return memory, Advice(np.clip(choice.target, view.least, view.most), plan, choice.why, worth)


def allowed_moves(target: Floats, least: Floats, most: Floats) -> Mask:
    """Return the mask (runs, 6), True for each of `MOVES` that keeps the target within its bounds; staying always is.

    Args:
        target: (runs,) executors last asked for.
        least: (runs,) fewest executors allowed.
        most: (runs,) most executors allowed.
    """
    after = target[:, None] + _MOVES
    mask: Mask = (after >= least[:, None]) & (after <= most[:, None])
    mask[:, STAY] = True
    return mask


def moves_near_advice(mask: Mask, target: Floats, advice: Advice) -> Mask:
    """Return the mask (runs, 6), True for each of `MOVES` that ends within one executor (`REACH`) of the advice.

    The range is from min(plan, advised target) - 1 to advised target + 1 executors. Where no move ends in it, the one
    move nearest to the advised target is allowed; so each row has at least one.

    Args:
        mask: (runs, 6) moves within bounds, of `allowed_moves`.
        target: (runs,) executors last asked for.
        advice: of the baseline, for the same runs.
    """
    after = target[:, None] + _MOVES
    low, high = np.minimum(advice.plan, advice.target) - REACH, advice.target + REACH
    near: Mask = mask & (after >= low[:, None]) & (after <= high[:, None])
    lost = ~near.any(axis=1)
    near[lost, nearest_move(mask, target, advice.target)[lost]] = True
    return near


def nearest_move(mask: Mask, target: Floats, advised: Floats) -> Integers:
    """Return (runs,) the index of the allowed move that ends nearest to the advised target; of two, the higher."""
    off = np.abs(target[:, None] + _MOVES - advised[:, None] - 0.1)
    return np.where(mask, off, np.inf).argmin(axis=1)


def least_executors(view: View, utilisation: Floats | float) -> Floats:
    """Return (runs,) the fewest executors that sustain the observed rate, within bounds; without a rate, the least.

    Args:
        view: of the runs.
        utilisation: busy share of the capacity that may be used.
    """
    return view.capacity.executors_for(usable_rps(view) / utilisation, view.least, view.most)[0]


def apply_moves(view: View, moves: Integers, bottom: Floats) -> Floats:
    """Return (runs,) the targets after moves (indices of `MOVES`), within bounds and not below `bottom` (runs,)."""
    within = np.clip(view.target + _MOVES[moves], view.least, view.most)
    return np.maximum(within, bottom)


def best_moves(values: Floats, mask: Mask) -> Integers:
    """Return (runs,) the index of the allowed move with the highest value; of equals, the first."""
    return np.where(mask, values, -np.inf).argmax(axis=1)


def reward_parts(account: Floats, needed: Floats, most: Floats, seconds: float) -> Floats:
    """Compute the reward of a step in two parts: executors (and actions), and violation, both as shares and negated.

    With weights (1, price) their sum is `needed / most` less `paid + ACTION_S * changes + price * most * over` divided
    by `most * seconds`: the price is what a second over the target costs, in seconds of all executors.

    Args:
        account: (3, runs) of the step: executor-seconds paid, from the request on, seconds over the latency target, and
            changes of the target.
        needed: (runs,) executors that the load of the step needs; no action changes them, so taking them off only makes
            rewards of different runs more alike, and learning faster.
        most: (runs,) upper bound of the executors.
        seconds: length of the step.

    Returns:
        (runs, 2).
    """
    paid, over, changes = account
    executors = paid + ACTION_S * changes - needed * seconds
    return np.stack([-executors / (most * seconds), -over / seconds], axis=1)
