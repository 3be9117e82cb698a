"""Pareto fronts of nodes by what is free of them, and whether nodes and operators are of processors or of memory.

Pa-Stream paper, section "Initial placement", eq. 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.placement.graph import Floats
from models.placement.instances.job import CORES, MEMORY, ParallelJob


def first_front(points: Floats, among: Sequence[int]) -> list[int]:
    """Return those of some rows that none of them dominates: is not worse in any column and better in one.

    Args:
        points: (n, columns), more is better.
        among: rows, in whose order the answer is.
    """
    rows = points[list(among)]

    def is_dominated(own: Floats) -> bool:
        return bool(((rows >= own).all(axis=1) & (rows > own).any(axis=1)).any())

    return [one for one in among if not is_dominated(points[one])]


def pareto_fronts(points: Floats) -> list[list[int]]:
    """Return all rows by front: each front is the first one of what those before leave."""
    left, found = list(range(len(points))), []
    while left:
        found.append(first_front(points, left))
        left = [row for row in left if row not in found[-1]]
    return found


def is_cores_node(capacity: Floats) -> np.ndarray:
    """Return (n,) whether a node has a larger share of all cores than of all memory (eq. 6); capacity (n, 2)."""
    share = capacity / capacity.sum(axis=0)
    return np.asarray(share[:, CORES] > share[:, MEMORY])


def is_cores_operator(job: ParallelJob) -> np.ndarray:
    """Return (m,) whether all instances of an operator ask for a larger share of cores than of memory."""
    asked = job.need * job.instances[:, None]
    share = asked / np.maximum(asked.sum(axis=0), 1e-12)
    return np.asarray(share[:, CORES] > share[:, MEMORY])
