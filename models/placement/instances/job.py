"""A job whose operators run as several instances each, and how many of them lie on which node.

Pa-Stream paper, section "System model", eq. 4 to 9; Md-Stream paper, eq. 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Dag, Floats, GraphError, Integers

CORES, MEMORY = 0, 1
"""Columns of what an instance needs and of what a node has: cores and GB."""
Counts = Integers
"""(m, n) instances of each operator on each node (the paper's x)."""


class StreamEdge(NamedTuple):
    """A stream between two operators.

    Attributes:
        tail: operator that sends.
        head: operator that takes.
        factor: records sent for each record that the tail has worked on.
        bytes: of a record.
    """

    tail: int
    head: int
    factor: float = 1.0
    bytes: float = 100.0


@dataclass(frozen=True)
class ParallelJob:
    """A job of m operators.

    Attributes:
        arrivals_rps: (m,) records/s that reach each operator from outside.
        service_s: (m,) core-seconds of a record.
        instances: (m,) of each, at least 1.
        need: (m, 2) cores and GB that one instance asks for.
        edges: streams, without a cycle.
        pooled: whether the instances of an operator on one node take from one queue, as the cores of a Spark executor
            do; else each has its own, as in Storm.
        pending: records of the sources that may be under way at once, before these wait (Storm's `max.spout.pending`).
    """

    arrivals_rps: Floats
    service_s: Floats
    instances: Integers
    need: Floats
    edges: tuple[StreamEdge, ...]
    pooled: bool = False
    pending: float = np.inf

    def __post_init__(self) -> None:
        """Refuse what is no job.

        Raises:
            GraphError: sizes that do not go together, an operator without an instance, or a cycle.
        """
        m = len(self.instances)
        if not (len(self.arrivals_rps) == len(self.service_s) == len(self.need) == m) or self.need.shape != (m, 2):
            raise GraphError(f"{m} operators: arrivals, service and need of each are expected, need {self.need.shape}")
        if not m or (self.instances < 1).any() or not (self.service_s > 0).all():
            raise GraphError(f"instances={self.instances.tolist()}: at least 1 of each, and service above 0 s")
        _ = self.shape

    @property
    def operators(self) -> int:
        """Number of operators (m)."""
        return len(self.instances)

    @cached_property
    def shape(self) -> Dag:
        """The operators with demand 1, and the factors of their streams as flows; their order is that of this graph."""
        return Dag.build(np.ones(self.operators), [(one.tail, one.head, one.factor) for one in self.edges])

    @cached_property
    def order(self) -> list[int]:
        """Operators so that each comes after those whose records it takes; of several the lowest number."""
        left = np.bincount([one.head for one in self.edges], minlength=self.operators).tolist()
        found: list[int] = []
        ready = [own for own in range(self.operators) if not left[own]]
        while ready:
            own = min(ready)
            ready.remove(own)
            found.append(own)
            for one in self.edges:
                if one.tail == own:
                    left[one.head] -= 1
                    if not left[one.head]:
                        ready.append(one.head)
        return found

    @cached_property
    def taken_rps(self) -> Floats:
        """(m,) records/s that reach each operator where none falls behind."""
        rate = np.array(self.arrivals_rps, float)
        for own in self.order:
            for one in self.edges:
                if one.tail == own:
                    rate[one.head] += one.factor * rate[own]
        return rate

    def edge_rps(self, edge: StreamEdge) -> float:
        """Return the records/s of a stream where no operator falls behind."""
        return float(edge.factor * self.taken_rps[edge.tail])

    def between_instances(self) -> Dag:
        """Return the graph of all instances, operator by operator: cores kept busy, and records/s between two.

        Records go to each instance alike (shuffle grouping): rate ÷ (instances of the tail x of the head).
        """
        first = np.concatenate([[0], np.cumsum(self.instances)])
        busy = np.maximum(self.taken_rps * self.service_s / self.instances, 1e-9)
        edges = [
            (int(first[one.tail]) + a, int(first[one.head]) + b,
             self.edge_rps(one) / float(self.instances[one.tail] * self.instances[one.head]))
            for one in self.edges
            for a in range(self.instances[one.tail])
            for b in range(self.instances[one.head])
        ]  # fmt: skip
        return Dag.build(np.repeat(busy, self.instances), edges)

    def owners(self) -> Integers:
        """Return the operator of each instance, in the order of `between_instances`."""
        return np.repeat(np.arange(self.operators), self.instances)


def count_instances(job: ParallelJob, nodes: Nodes, places: Sequence[int]) -> Counts:
    """Return how many instances of each operator lie on each node; `places`: node of each instance."""
    counts = np.zeros((job.operators, nodes.count), np.int64)
    np.add.at(counts, (job.owners(), np.asarray(places, np.int64)), 1)
    return counts


def free_of(job: ParallelJob, nodes: Nodes, counts: Counts) -> Floats:
    """Return (n, 2) what is free of each node beside the instances on it; below 0 where it has no room."""
    return nodes.capacity - nodes.used - counts.T @ job.need


def has_room(job: ParallelJob, nodes: Nodes, counts: Counts) -> bool:
    """Whether every node has room for what lies on it (eq. 7 to 9: cores, memory, slots), and each operator lies."""
    free = free_of(job, nodes, counts)
    return bool((free >= -1e-9).all() and (counts.sum(axis=0) <= nodes.slots).all() and (counts.sum(axis=1) > 0).all())
