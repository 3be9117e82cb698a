"""Who decides beside the agent: `mpc` at the agent's own price. Its plan is part of what the agent sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory, View
from models.policy.planners.mpc import Mpc, cheapest
from models.policy.planners.planner import backlog

FACTORS = (0.1, 1.0, 10.0)
"""Of the price, at which the plan is told too: how fast it rises with the price says how sure the peak is."""

SHARE = 0.2
"""Of the agent's price, at which it plans: it counts every moment at which the peak is passed as a moment over the
target, and most of them are over within the look or are made good by the next raise. Chosen on drawn runs."""


def violation_cost_at(price: Floats | float) -> Floats:
    """The baseline's knob at a price of the agent's."""
    return np.log10(SHARE * np.asarray(price, float))


@dataclass(frozen=True, eq=False)
class Advice:
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
    rate = np.where(np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0), view.arrival_rps, 0.0)
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
