"""How instances share the records of their operator, and the cores of their node."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def slowdown(count: Any, busy: Any, cores: float, own: int) -> float:
    """Return by what a busy instance of an operator is slowed on a node: mean of max(1, busy instances ÷ cores).

    Instances are busy independently of each other; those that are share the cores alike.

    Args:
        count: (m,) instances of each operator on the node.
        busy: (m,) share of the time that one of them is busy.
        cores: of the node.
        own: operator of the instance.
    """
    many = 0
    for one in range(len(count)):
        many += count[one]
    if many <= cores:
        return 1.0
    chance = np.zeros(many + 1)
    chance[1] = 1.0  # itself
    top = 1
    for one in range(len(count)):
        for _ in range(count[one] - (one == own)):
            top += 1
            for at in range(top, 0, -1):
                chance[at] = chance[at] * (1.0 - busy[one]) + chance[at - 1] * busy[one]
    total = 0.0
    for at in range(1, many + 1):
        total += chance[at] * max(1.0, at / cores)
    return total


@numba.njit(cache=True)
def send_on(counts: Any, share: Any, at: Any, came: Any) -> None:
    """Move records that are where their operator has no instance to its instances; `at` and `came` are changed."""
    m, n = counts.shape
    for own in range(m):
        waiting, coming = 0.0, 0.0
        for node in range(n):
            if counts[own, node] == 0:
                waiting += at[own, node]
                coming += came[own, node]
                at[own, node], came[own, node] = 0.0, 0.0
        if waiting > 0.0 or coming > 0.0:
            for node in range(n):
                at[own, node] += waiting * share[own, node]
                came[own, node] += coming * share[own, node]


@numba.njit(cache=True)
def shares_of(counts: Any, alive: Any) -> Any:
    """Return the (m, n) share of an operator's records for each node: by its living instances, or all if none lives."""
    m, n = counts.shape
    share = np.zeros((m, n))
    for own in range(m):
        living = 0.0
        for node in range(n):
            living += counts[own, node] * alive[node]
        for node in range(n):
            one = counts[own, node] * alive[node] if living > 0 else float(counts[own, node])
            share[own, node] = one / (living if living > 0 else counts[own].sum())
    return share


@numba.njit(cache=True)
def share_cores(places: Any, counts: Any, busy: Any, cores: Any, alive: Any, speed: Any) -> None:
    """Move (m, n) `speed` halfway to what instances have, busy as in the step before: so the speeds settle."""
    for node in range(counts.shape[1]):
        for own in places.guest[places.first_guest[node] : places.first_guest[node + 1]]:
            now = 1.0
            if places.many[node] > cores[node]:
                now = 1.0 / slowdown(counts[:, node], busy[:, node], max(cores[node], 1e-9), own)
            speed[own, node] = 0.0 if alive[node] == 0.0 else (max(speed[own, node], 1e-6) + now) / 2


@numba.njit(cache=True)
def mean_speed(places: Any, speed: Any, share: Any, own: int) -> float:
    """Return the speed of an operator's instances, by the records that each gets."""
    total = 0.0
    for node in places.host[places.first_host[own] : places.first_host[own + 1]]:
        total += speed[own, node] * share[own, node]
    return total
