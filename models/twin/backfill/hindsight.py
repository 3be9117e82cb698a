"""What a backfill would have cost who had known everything beforehand: a bound that no schedule goes below."""

from __future__ import annotations

import numpy as np

from models.backfill.finish import HOUR_S
from models.backfill.futures import Futures
from models.policy.core.capacity import Floats

PRICES = np.geomspace(0.1, 100, 240)
"""Prices of a record that are tried, in units of what it costs where capacity is proportional to executors."""


def least_hours(futures: Futures, steps: int, records: float) -> Floats:
    """Return (S,) executor-hours below which no schedule replays the records in time, each future known beforehand.

    Proof. Fix a future. A schedule e pays Σ_k Δ·p_k, p_k = min(held_k + e_k, most) − held_k, and replays at most
    Σ_k g_k(p_k), g_k the room of held_k + p_k executors that all work from the step's beginning: starting takes away
    only. If it is done in time, Σ g_k(p_k) ≥ W, so that for every ν ≥ 0
    Σ Δ·p_k ≥ Σ (Δ·p_k − ν·g_k(p_k)) + ν·W ≥ Σ_k min_p (Δ·p − ν·g_k(p)) + ν·W.
    In the step in which it is done it pays a part; it then replays no more than that part of g_k, and what it pays is
    the same share of p_k: the sum over whole steps is replaced by one with weights in [0, 1], under which each bracket
    is at least min(0, min_p (...)) — and p = 0 with g_k ≥ 0 is never above 0. The highest over ν is taken.
    """
    found, fleet = np.zeros(len(futures.live)), futures.fleet
    counts = np.arange(fleet.most - fleet.least + 1)
    hours = futures.step_s / HOUR_S
    for s in range(len(found)):
        held, rate = futures.held[s, :steps, None], futures.slot_rps[s]
        room = fleet.worth[np.minimum(held + counts, fleet.most)] * rate - futures.live[s, :steps, None]
        gains = np.maximum(room, 0.0) * futures.step_s / futures.cost[s]
        paid = (np.minimum(held + counts, fleet.most) - held) * hours
        high = hours / max(rate * fleet.worth[1] * futures.step_s / futures.cost[s], 1e-12)
        for price in high * PRICES:
            found[s] = max(found[s], (paid - price * gains).min(axis=1).sum() + price * records)
    return found
