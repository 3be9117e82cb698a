"""Which placements there are, and which moves lead from one to another: all that learning needs to know of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Integers
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import Counts, ParallelJob
from models.placement.learned.actions import apply_move, farthest, move_at

MOST_SLOTS = 16


class MoveSpace(Protocol):
    """Placements of m operators on n nodes, as (m, n) counts, and 2 m n moves (`learned.actions`)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Operators and nodes: (m, n)."""

    @property
    def slots(self) -> Integers:
        """(n,) the most that a node may hold of an operator: the unit in which a network is shown counts."""

    def farthest(self, counts: Counts) -> Integers:
        """Return (2 m n,) by how many instances each move may go; 0: it is not allowed."""

    def after(self, counts: Counts, index: int, length: int) -> Counts:
        """Return the placement after a move that is allowed to go so far."""

    def draw(self, random: np.random.Generator) -> Counts:
        """Return a placement with room, drawn."""


@dataclass(frozen=True)
class InstanceSpace:
    """Instances of operators, each on any node with room for it. Pa-Stream paper, eq. 17 and 18.

    Attributes:
        job: of m operators.
        nodes: n of them.
    """

    job: ParallelJob
    nodes: Nodes

    @property
    def shape(self) -> tuple[int, int]:
        """Operators and nodes."""
        return self.job.operators, self.nodes.count

    @property
    def slots(self) -> Integers:
        """(n,) slots, 16 at most."""
        return np.clip(self.nodes.slots, 1, MOST_SLOTS).astype(np.int64)

    def farthest(self, counts: Counts) -> Integers:
        """Return (2 m n,) by how many instances each move may go."""
        return farthest(self.job, self.nodes, counts)

    def after(self, counts: Counts, index: int, length: int) -> Counts:
        """Return the instances after a move."""
        return apply_move(counts, move_at(index, self.nodes.count), length)

    def draw(self, random: np.random.Generator) -> Counts:
        """Return instances with room, drawn.

        Raises:
            NoRoomError: none was found.
        """
        return draw_counts(self.job, self.nodes, random)
