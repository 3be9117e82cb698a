"""How much slower instances are that share the cores of a node."""

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
