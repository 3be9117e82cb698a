"""Schedules of extra executors that replay the most for their price, by dynamic programming over whole executors.

With a price ν per replayed record the work need not be bound to a sum: the schedule that minimises
Σ (paid − ν·replayed) is the cheapest of all schedules that replay, in the mean over the futures, at least as much as it
does (Lagrange; Everett 1963). The higher ν, the more is replayed; `search` finds the price, and what lies between two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.backfill.futures import Futures
from models.policy.core.capacity import Floats, Integers

CHANGE = 0.02
"""Executor-steps that a change by one executor counts, so that a schedule does not flutter for nothing."""


class MeanGains(NamedTuple):
    """What extra executors bring in the mean over the futures.

    Attributes:
        records: (K, E + 1) replayed in a step with 0 to E extra executors that work from its beginning.
        starting: (K, E + 1) records that all executors of a step would replay within the mean lead time, a step at
            most. Turns are left out here: schedules that come of it are weighed under the futures, with turns.
        before: the same as `starting`, of the executors that run now.
        now: extra executors that run now.
    """

    records: Floats
    starting: Floats
    before: float
    now: int


def mean_gains(futures: Futures, steps: int, now: int) -> MeanGains:
    """Return what 0 to `most − least` extra executors bring in each of the first steps.

    Args:
        futures: of at least so many steps.
        steps: up to the deadline.
        now: extra executors that run already.
    """
    fleet, held = futures.fleet, futures.held[:, :steps]
    worth, late = futures.slot_rps / futures.cost, np.minimum(futures.lead_s / futures.step_s, 1.0)
    most = fleet.most - fleet.least
    records, starting = np.empty((steps, most + 1)), np.empty((steps, most + 1))
    need = futures.live[:, :steps] / futures.cost[:, None]
    for extra in range(most + 1):
        room = fleet.worth[np.minimum(held + extra, fleet.most)] * worth[:, None]
        records[:, extra] = np.clip(room - need, 0.0, futures.most_rps).mean(axis=0)
        starting[:, extra] = (room * late[:, None]).mean(axis=0)
    before = float((fleet.worth[futures.running] * worth * late).mean())
    return MeanGains(records * futures.step_s, starting * futures.step_s, before * futures.step_s, min(now, most))


def best_schedules(gains: MeanGains, prices: Floats) -> Integers:
    """Return the schedule that is worth most at each price of a record.

    Args:
        gains: of K steps and up to E extra executors.
        prices: (P,) executor-steps that a replayed record is worth.

    Returns:
        (P, K) extra executors; of equal ones the fewest.
    """
    steps, count = gains.records.shape
    counts = np.arange(count)
    turning = CHANGE * np.abs(counts[:, None] - counts)
    value, choice = np.zeros((len(prices), count)), np.empty((steps, len(prices), count), np.int64)
    for k in range(steps - 1, 0, -1):
        ahead = counts - prices[:, None] * gains.records[k] + value
        lost = np.maximum(gains.starting[k] - gains.starting[k - 1][:, None], 0.0)
        whole = ahead[:, None, :] + prices[:, None, None] * lost + turning
        choice[k] = whole.argmin(axis=2)
        value = np.take_along_axis(whole, choice[k][..., None], axis=2)[..., 0]
    lost = np.maximum(gains.starting[0] - gains.before, 0.0)
    first = counts - prices[:, None] * (gains.records[0] - lost) + value + CHANGE * np.abs(counts - gains.now)
    found = np.empty((len(prices), steps), np.int64)
    found[:, 0] = first.argmin(axis=1)
    for k in range(1, steps):
        found[:, k] = choice[k][np.arange(len(prices)), found[:, k - 1]]
    return found
