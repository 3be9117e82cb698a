"""The cheapest schedule that is done by a deadline with the probability asked for.

First the schedules that are best at a price of a record (`cheapest`): the more a record is worth, the surer. Between
the cheapest that is sure enough and its rival that is not lie those that go from one to the other at some step; then
executors are taken off for some steps, or moved. Each is judged under the same futures, so the answer is the best
of what was tried; `tests/unit/backfill/test_cheapest_schedule.py` holds it against every schedule there is.
"""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np

from models.backfill.cheapest import best_schedules, mean_gains
from models.backfill.finish import weigh
from models.backfill.futures import Futures
from models.policy.core.capacity import Integers

PRICES = np.geomspace(0.2, 30, 14)
"""Prices of a record that are tried first, in units of what it costs where capacity is proportional to executors."""
BETWEEN, SWITCHES = 6, 12
"""Prices, and steps to switch at, that are tried between two neighbours."""
BLOCKS = 6
"""Parts of the time between which executors are moved."""
TOGETHER = 8
"""Schedules that are weighed at once: more leave the processor's cache, and take twice as long each."""


class WeighedSchedule(NamedTuple):
    """A schedule and what is to be expected of it.

    Attributes:
        extra: (K,) executors beside those of the live promise, over all steps of the futures.
        chance: of being done by the deadline.
        hours: executor-hours paid until it is done, mean.
        price: executor-steps per record at which it was found; 0: without one.
    """

    extra: Integers
    chance: float
    hours: float
    price: float


def with_tail(extra: Integers, steps: int) -> Integers:
    """Lengthen (..., D) schedules to (..., steps): whoever misses the deadline goes on with the most of its executors.

    And with at least one, as otherwise it might never be done.
    """
    most = np.maximum(extra.max(axis=-1, initial=0), 1)[..., None]
    return np.concatenate([extra, np.repeat(most, steps - extra.shape[-1], axis=-1)], axis=-1)


def cheapest_schedule(
    futures: Futures, records: float, steps: int, sure: float, now: int = 0, near: float = 0.0, rounds: int = 4
) -> WeighedSchedule | None:
    """Find the cheapest schedule that is done in time with a probability.

    Args:
        futures: draws over at least `steps` steps.
        records: to replay.
        steps: until the deadline, at least 1.
        sure: least probability.
        now: extra executors that run already, which need not be started.
        near: price at which the schedule of a moment ago was found; 0: there is none.
        rounds: of taking executors off, at most.

    Returns:
        The schedule; None where not even all executors from now on are done in time so surely.
    """
    base = 1.0 / (futures.step_s * float((futures.slot_rps / futures.cost).mean()) * futures.fleet.worth[1])
    pool = _Pool(futures, records, steps, sure)
    bounds = np.array([0, futures.fleet.most - futures.fleet.least])
    pool.add(np.repeat(bounds[:, None], steps, axis=1), [0.0, 0.0])
    if pool.best() is None:
        return None
    gains = mean_gains(futures, steps, now)
    prices = base * PRICES if near <= 0 else near * np.geomspace(0.6, 1.7, 8)
    pool.add(best_schedules(gains, prices), prices.tolist())
    edges = pool.prices_around()
    if edges[0] < edges[1]:
        between = np.geomspace(max(edges[0], base / 50), min(edges[1], base * 300), BETWEEN + 2)[1:-1]
        pool.add(best_schedules(gains, between), between.tolist())
    pool.add(*pool.switched())
    for _ in range(rounds):
        better = [pool.add(*pool.trimmed())]
        if rounds > 1:
            better.append(pool.add(*pool.moved()))
        if not any(better):
            break
    return pool.best()


class _Pool:
    """Schedules tried so far."""

    def __init__(self, futures: Futures, records: float, steps: int, sure: float) -> None:
        self.futures, self.records, self.steps, self.sure = futures, records, steps, sure
        self.tried: list[WeighedSchedule] = []

    def add(self, extra: Integers, prices: list[float]) -> bool:
        """Weigh (C, D) schedules; whether one of them is now the best."""
        was = self.best()
        if len(extra):
            whole = with_tail(extra, self.futures.steps)
            for some in range(0, len(whole), TOGETHER):
                few = slice(some, some + TOGETHER)
                chances, hours = weigh(self.futures, whole[few], self.records, self.steps)
                rows = zip(whole[few], chances.tolist(), hours.tolist(), prices[few], strict=True)
                self.tried += [WeighedSchedule(*row) for row in rows]
        return self.best() is not was

    def best(self) -> WeighedSchedule | None:
        """The cheapest that is sure enough."""
        return min((one for one in self.tried if one.chance >= self.sure), key=lambda one: one.hours, default=None)

    def rival(self) -> WeighedSchedule | None:
        """The surest of those that are cheaper than the best."""
        best = self.best()
        cheaper = [one for one in self.tried if best is not None and one.hours < best.hours]
        return max(cheaper, key=lambda one: (one.chance, -one.hours), default=None)

    def prices_around(self) -> tuple[float, float]:
        """The prices between which the best lies."""
        sure = [one.price for one in self.tried if one.chance >= self.sure and one.price > 0]
        unsure = [one.price for one in self.tried if one.chance < self.sure]
        return max(unsure, default=0.0), min(sure, default=np.inf)

    def switched(self) -> tuple[Integers, list[float]]:
        """Schedules that begin as the best and go on as its rival, and the other way round."""
        best, rival = self.best(), self.rival()
        if best is None or rival is None:
            return np.zeros((0, self.steps), np.int64), []
        moments = np.unique(np.linspace(min(1, self.steps - 1), self.steps - 1, SWITCHES).astype(int))
        one, two = best.extra[: self.steps], rival.extra[: self.steps]
        made = [np.append(a[:m], b[m:]) for m in moments for a, b in ((one, two), (two, one))]
        return np.array(made, np.int64).reshape(-1, self.steps), [best.price] * len(made)

    def moved(self) -> tuple[Integers, list[float]]:
        """The best with an executor, or two, moved from one part of the time to another."""
        best, made = self.best(), []
        if best is None:
            return np.zeros((0, self.steps), np.int64), []
        edges = np.unique(np.linspace(0, self.steps, min(self.steps, BLOCKS) + 1).astype(int)).tolist()
        most = self.futures.fleet.most - self.futures.fleet.least
        for a, b in permutations([slice(*pair) for pair in pairwise(edges)], 2):
            for less, more in ((1, 1), (2, 1), (1, 2)):
                one = best.extra[: self.steps].copy()
                if one[a].max() >= less and one[b].max() + more <= most:
                    one[a], one[b] = np.maximum(one[a] - less, 0), one[b] + more
                    made.append(one)
        return np.array(made, np.int64).reshape(-1, self.steps), [best.price] * len(made)

    def trimmed(self) -> tuple[Integers, list[float]]:
        """The best with an executor less for 1, 2, 4 ... steps, and with none before a step."""
        best = self.best()
        made, length = [], 1
        if best is not None and (used := np.flatnonzero(best.extra[: self.steps])).size:
            made = [np.where(np.arange(self.steps) < m, 0, best.extra[: self.steps]) for m in used[1:]]
        while best is not None and length <= self.steps:
            for begin in range(0, self.steps, max(length // 2, 1)):
                one = best.extra[: self.steps].copy()
                if one[begin : begin + length].any():
                    one[begin : begin + length] = np.maximum(one[begin : begin + length] - 1, 0)
                    made.append(one)
            length *= 2
        return np.array(made, np.int64).reshape(-1, self.steps), [best.price if best else 0.0] * len(made)
