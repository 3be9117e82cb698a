"""Nodes of domains that lie apart, and what lies on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from models.placement.graph import Floats, GraphError, Integers

SAME_DOMAIN = 0.5
"""Distance of two nodes of a domain, in the unit of round trips between domains (ms)."""
MANY_SLOTS = 1 << 30


@dataclass(frozen=True)
class Nodes:
    """Nodes and the round trips between their domains.

    Attributes:
        capacity: (M, R) of each node by resource, above 0.
        used: (M, R) what others use of it.
        domain: (M,) of each node.
        round_trip: (D, D) ms between domains, 0 in the diagonal.
        master: domain from which the job is run.
        slots: (M,) instances of operators that a node may host; as many as it has room for where they are not stated.
        bandwidth_mbps: (M,) of each node's network interface; unlimited where it is not stated.
    """

    capacity: Floats
    used: Floats
    domain: Integers
    round_trip: Floats
    master: int = 0
    slots: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    bandwidth_mbps: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Fill in what is not stated, and refuse sizes that do not go together.

        Raises:
            GraphError: as said.
        """
        nodes, domains = len(self.domain), len(self.round_trip)
        for name, value in (("slots", MANY_SLOTS), ("bandwidth_mbps", np.inf)):
            stated = getattr(self, name)
            if not len(stated):
                object.__setattr__(self, name, np.full(nodes, value))
            elif len(stated) != nodes:
                raise GraphError(f"{name}={stated.tolist()}: one of each of the {nodes} nodes is expected")
        if self.capacity.shape != self.used.shape or len(self.capacity) != nodes or not (self.capacity > 0).all():
            raise GraphError(f"capacity {self.capacity.shape}, used {self.used.shape}, {nodes} domains: one row a node")
        if nodes and not 0 <= self.domain.min() <= self.domain.max() < domains:
            raise GraphError(
                f"domains {sorted(set(self.domain.tolist()))}: round trips are known of 0 to {domains - 1}"
            )

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.domain)

    def nearest_first(self) -> list[int]:
        """Return the nodes by their domain's round trip from the master's, then by what is used of them, then number.

        Md-Stream paper, Algorithm 3: the domain of the master is the first one.
        """
        share = (self.used / self.capacity).max(axis=1)
        near = self.round_trip[self.master, self.domain]
        return [
            int(node)
            for node in np.lexsort((np.arange(self.count), share, self.domain, near, self.domain != self.master))
        ]

    def distance(self, one: int, other: int) -> float:
        """Return the distance of two nodes: none, SAME_DOMAIN, or the round trip between their domains."""
        if one == other:
            return 0.0
        here, there = int(self.domain[one]), int(self.domain[other])
        return SAME_DOMAIN if here == there else float(self.round_trip[here, there])

    def traffic_cost(self, node: Sequence[int], flow: Floats) -> float:
        """Return the flow between blocks times the distance of their nodes, each pair once.

        Args:
            node: (blocks,) of each.
            flow: (blocks, blocks) between two of them, in both directions added (eq. 17).
        """
        pairs = [(a, b) for a in range(len(node)) for b in range(a + 1, len(node))]
        return float(sum(flow[a, b] * self.distance(node[a], node[b]) for a, b in pairs))
