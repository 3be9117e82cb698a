"""Directed acyclic graphs of operators with a demand each and a flow along each edge, as arrays.

Md-Stream paper, eq. 1 to 5: a vertex is an operator, an edge u to v carries ds(u, v).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Edge = tuple[int, int, float]
"""Tail, head and flow."""


class GraphError(ValueError):
    """A graph that cannot be planned; the message names the vertex or edge."""


class Neighbours(NamedTuple):
    """Neighbours of all vertices in one direction: those of v stand at `start[v]` to `start[v + 1]`.

    Attributes:
        start: (V + 1,) places.
        other: (E,) neighbours.
        flow: (E,) flows of the edges to them.
    """

    start: Integers
    other: Integers
    flow: Floats


@dataclass(frozen=True)
class Dag:
    """A directed acyclic graph.

    Attributes:
        demand: (V,) of each vertex, above 0.
        tail: (E,) vertices from which edges go, in the order of (tail, head); no two edges have both in common.
        head: (E,) vertices to which they go.
        flow: (E,) at least 0.
    """

    demand: Floats
    tail: Integers
    head: Integers
    flow: Floats

    @classmethod
    def build(cls, demand: Sequence[float] | Floats, edges: Iterable[Edge]) -> Dag:
        """Return the graph of some edges; flows of edges between the same two vertices are added.

        Raises:
            GraphError: there is no vertex, one has no demand, an edge has no such vertex, leads to where it begins or
                has a negative flow, or the edges make a cycle.
        """
        demands = np.asarray(demand, float)
        if not len(demands) or not (demands > 0).all():
            raise GraphError(f"demand={demands.tolist()}: one above 0 of each vertex is expected, and a vertex")
        flows: dict[tuple[int, int], float] = {}
        for tail, head, flow in edges:
            if not (0 <= tail < len(demands) and 0 <= head < len(demands)):
                raise GraphError(f"edge {tail} to {head}: vertices are 0 to {len(demands) - 1}")
            if tail == head or not flow >= 0:
                raise GraphError(f"edge {tail} to {head} with flow {flow}: two vertices and 0 or more are expected")
            flows[tail, head] = flows.get((tail, head), 0.0) + float(flow)
        known = sorted(flows)
        ends = np.array(known, np.int64).reshape(-1, 2)
        graph = cls(demands, ends[:, 0].copy(), ends[:, 1].copy(), np.array([flows[one] for one in known], float))
        try:
            TopologicalSorter(_needs(known)).prepare()
        except CycleError as error:
            raise GraphError(f"vertices {error.args[1]} are a cycle: take one of their edges out") from None
        return graph

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.demand)

    @cached_property
    def outgoing(self) -> Neighbours:
        """Edges by their tail."""
        return _neighbours(self.size, self.tail, self.head, self.flow)

    @cached_property
    def incoming(self) -> Neighbours:
        """Edges by their head."""
        return _neighbours(self.size, self.head, self.tail, self.flow)

    def cut(self, block: Integers) -> float:
        """Return the flow between blocks (eq. 4 and 5, of which i = j is left out); `block`: (V,) of each vertex."""
        return float(self.flow[block[self.tail] != block[self.head]].sum())

    def loads(self, block: Integers, blocks: int) -> Floats:
        """Return the (blocks,) demand of each (eq. 10)."""
        return np.bincount(block, self.demand, minlength=blocks).astype(float)


def _needs(edges: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    needs: dict[int, list[int]] = {}
    for tail, head in edges:
        needs.setdefault(head, []).append(tail)
    return needs


def _neighbours(size: int, one: Integers, other: Integers, flow: Floats) -> Neighbours:
    order = np.lexsort((other, one))
    start = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=size))]).astype(np.int64)
    return Neighbours(start, other[order], flow[order])
