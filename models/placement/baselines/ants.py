"""An ant colony that puts instances on nodes: traffic over distance, and nodes that are asked for more than they have.

Ant system with bounds of the pheromone (Stuetzle and Hoos 2000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.placement.graph import Floats, Integers

WEIGHT_TRAIL, WEIGHT_NEAR = 1.0, 2.0
ANTS, TURNS, PATIENCE = 20, 50, 10
EVAPORATION, LEAST_TRAIL, MOST_TRAIL = 0.1, 0.01, 10.0
OVERLOAD = 1000.0
"""Cost of a node that is asked for twice what is free of it; all traffic at distance 1 costs 1."""
OPEN = -1
"""Node of an instance that is not placed yet."""


@dataclass(frozen=True)
class Colony:
    """What ants know of instances and nodes.

    Attributes:
        flow: (v, v) share of all records/s between two instances, in both directions added.
        way: (n, n) distance of nodes.
        need: (v, R) of each instance.
        free: (n, R) of each node.
    """

    flow: Floats
    way: Floats
    need: Floats
    free: Floats

    def overload(self, used: Floats) -> Floats:
        """Return (..., n) what it costs that nodes are asked for more than is free, of (..., n, R) what is asked."""
        return OVERLOAD * np.maximum(used / np.maximum(self.free, 1e-9) - 1.0 - 1e-9, 0.0).sum(axis=-1)

    def cost(self, place: Integers) -> float:
        """Return the traffic over distance of placed instances (v,), and how far nodes are asked for too much."""
        used = np.zeros_like(self.free)
        np.add.at(used, place, self.need)
        return float((self.flow * self.way[np.ix_(place, place)]).sum() / 2 + self.overload(used).sum())

    def nearness(self, own: int, place: Integers) -> Floats:
        """Return (ants, n) how near each node is to what an instance talks to: 1 ÷ (1 + traffic added + overload).

        Args:
            own: the instance.
            place: (ants, v) nodes of those that are placed, else OPEN.
        """
        known = place != OPEN
        added = ((self.flow[own] * known)[:, :, None] * self.way[np.where(known, place, 0)]).sum(axis=1)
        used = np.stack([
            np.bincount(row[have], weights=self.need[have, column], minlength=len(self.free))
            for row, have in zip(place, known, strict=True)
            for column in range(self.need.shape[1])
        ]).reshape(len(place), self.need.shape[1], -1).swapaxes(1, 2)  # fmt: skip
        return 1.0 / (1.0 + added + self.overload(used + self.need[own]))


def chances(trail: Floats, near: Floats) -> Floats:
    """Return the shares (..., n) with which ants choose nodes: trail^1 x nearness^2 of all."""
    found = trail**WEIGHT_TRAIL * near**WEIGHT_NEAR
    return found / found.sum(axis=-1, keepdims=True)


def strengthen(trail: Floats, cost: float) -> Floats:
    """Return trails after a turn in which they were on the best way, of a cost: nine tenths, and 1 ÷ cost."""
    return np.clip(trail * (1 - EVAPORATION) + 1.0 / max(cost, 1e-9), LEAST_TRAIL, MOST_TRAIL)


def search_places(colony: Colony, fixed: Integers, seed: int) -> Integers:
    """Return (v,) nodes of all instances, the cheapest that the ants found.

    Args:
        colony: what they know.
        fixed: (v,) nodes of instances that are placed already, else OPEN.
        seed: equal ones give equal answers.
    """
    random, open_ones = np.random.default_rng(seed), np.flatnonzero(fixed == OPEN)
    if not len(open_ones):
        return fixed.copy()
    trail = np.ones((len(fixed), len(colony.free)))
    best, least, idle = fixed, np.inf, 0
    for _ in range(TURNS):
        place = np.tile(fixed, (ANTS, 1))
        for own in random.permutation(open_ones).tolist():
            share = chances(trail[own], colony.nearness(own, place)).cumsum(axis=1)
            drawn = (share < random.random(ANTS)[:, None] * share[:, -1:]).sum(axis=1)
            place[:, own] = np.minimum(drawn, len(colony.free) - 1)
        costs = [colony.cost(row) for row in place]
        at = int(np.argmin(costs))
        idle = 0 if costs[at] < least - 1e-12 else idle + 1
        if idle == 0:
            best, least = place[at].copy(), costs[at]
        if idle >= PATIENCE:
            break
        onto = np.zeros_like(trail, bool)
        onto[open_ones, place[at, open_ones]] = True
        faded = np.clip(trail * (1 - EVAPORATION), LEAST_TRAIL, MOST_TRAIL)
        trail = np.where(onto, strengthen(trail, costs[at]), faded)
    return best
