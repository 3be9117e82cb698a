"""One instance more or fewer of an operator on a node: which moves there are, and how far each may go.

Pa-Stream paper, eq. 17 and 18, and Algorithm 2, lines 1 to 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Integers
from models.placement.instances.job import Counts, ParallelJob, free_of

FAR = 0.25
"""Share of the moves that are more than one instance, where there may be more (e of eq. 17)."""


class InstanceMove(NamedTuple):
    """A kind of move: instances of an operator on a node are added, or taken away."""

    operator: int
    node: int
    taken: bool


def index_of(move: InstanceMove, nodes: int) -> int:
    """Return the index of a move among 2 m n: 2 (operator n + node), and one more where instances are taken away."""
    return 2 * (move.operator * nodes + move.node) + move.taken


def move_at(index: int, nodes: int) -> InstanceMove:
    """Return the move of an index; the inverse of `index_of`."""
    place, taken = divmod(index, 2)
    return InstanceMove(*divmod(place, nodes), bool(taken))


def farthest(job: ParallelJob, nodes: Nodes, counts: Counts) -> Integers:
    """Return (2 m n,) by how many instances each move may go; 0: it is not allowed.

    To add: free slots, and cores and memory for them. To take away: those on the node, and all but one of the operator.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances.
    """
    free = np.maximum(free_of(job, nodes, counts), 0.0)
    need = np.maximum(job.need, 1e-12)
    room = np.floor((free[None, :, :] / need[:, None, :]).min(axis=2) + 1e-9)
    add = np.minimum(room, nodes.slots - counts.sum(axis=0)).astype(np.int64)
    take = np.minimum(counts, counts.sum(axis=1, keepdims=True) - 1)
    return np.maximum(np.stack([add, take], axis=2).reshape(-1), 0)


def draw_length(most: int, random: np.random.Generator) -> int:
    """Return by how many instances a move goes: 1 in three of four cases, else any of 2 to `most`."""
    if most <= 1 or random.random() < 1 - FAR:
        return 1
    return int(random.integers(2, most + 1))


def apply_move(counts: Counts, move: InstanceMove, length: int) -> Counts:
    """Return the instances after a move."""
    after = counts.copy()
    after[move.operator, move.node] += -length if move.taken else length
    return after


def moves_between(one: Counts, other: Counts) -> int:
    """Return how many instances lie elsewhere, one that comes and one that goes counted together, rounded up."""
    return int(-(-np.abs(one - other).sum() // 2))
