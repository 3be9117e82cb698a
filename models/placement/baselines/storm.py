"""Storm's default scheduler: instances dealt out to slots in turn, whatever they send each other."""

from __future__ import annotations

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.job import Counts, ParallelJob, count_instances


def slots_in_turn(nodes: Nodes, workers: int) -> list[int]:
    """Return the node of each of some slots: the first one of every node, then the second; roomier nodes first."""
    first = sorted(range(nodes.count), key=lambda node: (-int(nodes.slots[node]), node))
    turns = range(min(int(nodes.slots.max()), workers))
    return [node for turn in turns for node in first if turn < nodes.slots[node]][:workers]


def place_in_turn(job: ParallelJob, nodes: Nodes) -> Counts:
    """Return (m, n) instances on nodes: the i-th one, by operator, lies in slot i modulo the number of nodes.

    Args:
        job: of m operators, which asks for as many slots as there are nodes.
        nodes: with slots.
    """
    slots = slots_in_turn(nodes, nodes.count)
    return count_instances(job, nodes, [slots[one % len(slots)] for one in range(int(job.instances.sum()))])


def misfit(free: Floats, need: Floats, away: Floats) -> Floats:
    """Return (n,) how badly a task fits nodes (R-Storm): squares of what is left of each resource, and of the way.

    Args:
        free: (n, 2) cores and memory, as shares of the largest node's.
        need: (2,) of the task, likewise.
        away: (n,) way from the reference node: 0 to itself, 0.5 within its domain, else 1.

    Returns:
        A node whose cores would be exceeded has 1 more; one without the memory has infinity.
    """
    left = free - need
    found = np.sqrt((left**2).sum(axis=1) + away**2) + (left[:, 0] < -1e-9)
    return np.where(left[:, 1] < -1e-9, np.inf, found)


def place_by_resources(job: ParallelJob, nodes: Nodes) -> Counts:
    """Return (m, n) instances on nodes by R-Storm (Peng et al. 2015): breadth first, each on the node that fits best.

    The reference node is the freest one of the freest domain. Memory is kept to while a node has enough of it.
    """
    largest = nodes.capacity.max(axis=0)
    free, need = (nodes.capacity - nodes.used) / largest, job.need / largest
    domains = sorted(set(nodes.domain.tolist()))
    best = max(domains, key=lambda domain: (float(free[nodes.domain == domain].sum()), -domain))
    inside = np.flatnonzero(nodes.domain == best)
    reference = int(inside[free[inside].sum(axis=1).argmax()])
    away = np.where(nodes.domain == best, 0.5, 1.0)
    away[reference] = 0.0
    counts, slots = np.zeros((job.operators, nodes.count), np.int64), nodes.slots.copy()
    for own in _in_turn(job):
        badness = misfit(free, need[own], away)
        open_ones = np.where(slots > 0, badness, np.inf)
        if not np.isfinite(open_ones).any():  # of those with a slot the one with the most memory left
            open_ones = np.where((slots > 0) | (slots.max() <= 0), -free[:, 1], np.inf)
        chosen = int(np.argmin(open_ones))
        counts[own, chosen] += 1
        free[chosen] -= need[own]
        slots[chosen] -= 1
    return counts


def _in_turn(job: ParallelJob) -> list[int]:
    """Operators of the tasks: breadth first from the sources, one task of each operator in turn."""
    heads = {one.head for one in job.edges}
    order = [own for own in range(job.operators) if own not in heads]
    for own in order:
        order += sorted({one.head for one in job.edges if one.tail == own} - set(order))
    turns = range(int(job.instances.max()))
    return [own for turn in turns for own in order if turn < job.instances[own]]
