"""Where instances lie at first: Pareto sorting, then bins of two classes. Pa-Stream paper, "Initial placement"."""

from __future__ import annotations

import numpy as np

from models.placement.allocation.nodes import SAME_DOMAIN, Nodes
from models.placement.graph import Floats
from models.placement.instances.fronts import first_front, is_cores_node, is_cores_operator
from models.placement.instances.job import CORES, MEMORY, Counts, ParallelJob


class NoRoomError(ValueError):
    """An instance for which no node has room; the message names its operator and what is missing."""


def distance_ratios(nodes: Nodes) -> Floats:
    """Return (n, n) distance of nodes: 0 to itself, 1 within a domain, else the round trip ÷ that within a domain.

    For choosing between nodes, without a unit (Pa-Stream's d); what a record takes is `latency.distances_ms`.
    """
    found = np.maximum(nodes.round_trip[np.ix_(nodes.domain, nodes.domain)] / SAME_DOMAIN, 1.0)
    found[nodes.domain[:, None] == nodes.domain[None, :]] = 1.0
    np.fill_diagonal(found, 0.0)
    return found


def place_initially(job: ParallelJob, nodes: Nodes) -> Counts:
    """Return (m, n) instances on nodes: of each instance the first Pareto front of the nodes with room for it.

    Of these the ones of its operator's class, where there are any; of these the one with the least traffic over
    distance from the instances upstream, then with the most left in its scarcer resource, then the lowest number.

    Raises:
        NoRoomError: no node has room for an instance.
    """
    cores_node, cores_operator, way = is_cores_node(nodes.capacity), is_cores_operator(job), distance_ratios(nodes)
    counts = np.zeros((job.operators, nodes.count), np.int64)
    free, slots = nodes.capacity - nodes.used, nodes.slots.copy()
    for own in job.order:
        into = [one for one in job.edges if one.head == own]
        pair_rps = {one: job.edge_rps(one) / float(job.instances[one.tail] * job.instances[own]) for one in into}
        for number in range(int(job.instances[own])):
            room = np.flatnonzero((free >= job.need[own] - 1e-9).all(axis=1) & (slots > 0)).tolist()
            if not room:
                raise NoRoomError(
                    f"operator {own}, instance {number + 1} of {job.instances[own]}: no node has "
                    f"{job.need[own, CORES]:g} cores, {job.need[own, MEMORY]:g} GB and a slot free"
                )
            front = first_front(np.column_stack([free, nodes.bandwidth_mbps]), room)
            able = [node for node in front if cores_node[node] == cores_operator[own]] or front
            cost = sum(pair_rps[one] * way @ counts[one.tail] for one in into) if into else np.zeros(nodes.count)
            left = (free / nodes.capacity).min(axis=1)
            chosen = min(able, key=lambda node: (round(float(cost[node]), 9), -round(float(left[node]), 9), node))
            counts[own, chosen] += 1
            free[chosen] -= job.need[own]
            slots[chosen] -= 1
    return counts
