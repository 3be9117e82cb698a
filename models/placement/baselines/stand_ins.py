"""Stand-ins for two published schedulers of which only traits are known; results are never the originals'.

What the papers that compare with them say of Lc-Stream (several domains, bounded latency, idle nodes rest) and of
SP-Ant (what talks much lies together, an ant colony for the rest), and nothing else of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.baselines.ants import OPEN, Colony, search_places
from models.placement.graph import Dag, Floats, Integers
from models.placement.instances.initial import distance_ratios
from models.placement.instances.job import Counts, ParallelJob, StreamEdge, count_instances, free_of
from models.placement.instances.latency import distances_ms, waits_ms

TALKATIVE = 70
"""Percentile of the streams between instances from which on two of them are put together."""
SATURATED_MS = 1_000.0
"""Wait at an operator that cannot keep up, so that nodes can still be told apart."""


def place_within_latency(job: ParallelJob, nodes: Nodes, limit_ms: float) -> Counts:
    """Return (m, n) instances on nodes by the Lc-Stream stand-in: layer by layer, on as few nodes as the limit allows.

    Of the nodes in use with room, the one that most of the traffic from upstream comes from and on which the path so
    far keeps its share of the limit, by the waits of M/M/1; else the next node, the nearest first, if the path keeps
    its share there; else the one in use with the most traffic. Elasticity and nodes that rest are left out.

    Args:
        job: of m operators.
        nodes: n of them.
        limit_ms: of the slowest path; each layer has an equal share.
    """
    levels, way, order = _levels(job), distances_ms(nodes), nodes.nearest_first()
    wait = np.minimum(waits_ms(job, _spread(job, nodes)), SATURATED_MS)
    counts, until, active = np.zeros((job.operators, nodes.count), np.int64), np.zeros((job.operators, nodes.count)), 1
    for own in sorted(range(job.operators), key=lambda one: (levels[one], one)):
        into, share_ms = [one for one in job.edges if one.head == own], limit_ms * levels[own] / max(levels)
        arrived = _arrivals_ms(into, counts, until, way) + wait[own]
        traffic = sum(
            (job.edge_rps(one) * counts[one.tail] / counts[one.tail].sum() for one in into), np.zeros(nodes.count)
        )
        for _ in range(int(job.instances[own])):
            room = (free_of(job, nodes, counts) >= job.need[own] - 1e-9).all(axis=1)
            room &= counts.sum(axis=0) < nodes.slots
            here = [node for node in order[:active] if room[node]]
            able = [node for node in here if arrived[node] <= share_ms]
            wake = next((node for node in order[active:] if room[node]), None)
            if not able and wake is not None and (not here or arrived[wake] <= share_ms):
                active, able = order.index(wake) + 1, [wake]
            counts[own, max(able or here or order, key=lambda node: (traffic[node], -order.index(node)))] += 1
        until[own] = arrived
    return counts


def place_by_ants(job: ParallelJob, nodes: Nodes, seed: int = 0) -> Counts:
    """Return (m, n) instances on nodes by the SP-Ant stand-in: talkative ones together, an ant colony for the rest.

    Args:
        job: of m operators.
        nodes: n of them; their domains are known as distances only.
        seed: equal ones give equal answers.
    """
    graph = job.between_instances()
    free = np.column_stack([nodes.capacity - nodes.used, nodes.slots])
    need = np.column_stack([job.need[job.owners()], np.ones(graph.size)])
    flow = np.zeros((graph.size, graph.size))
    flow[graph.tail, graph.head] = graph.flow / max(graph.flow.sum(), 1e-12)
    flow += flow.T
    fixed = _pack(_groups(graph, need, free), need, free)
    colony = Colony(flow, distance_ratios(nodes), need, free)
    return count_instances(job, nodes, search_places(colony, fixed, seed).tolist())


def _groups(graph: Dag, need: Floats, free: Floats) -> list[list[int]]:
    """Instances that talk more than most do, joined from the most talkative pair on while a node may hold them."""
    if not len(graph.flow):
        return []
    owner, least = list(range(graph.size)), float(np.percentile(graph.flow, TALKATIVE))
    for at in np.argsort(-graph.flow, kind="stable"):
        one, other = owner[graph.tail[at]], owner[graph.head[at]]
        both = [v for v in range(graph.size) if owner[v] in (one, other)]
        if graph.flow[at] >= least and one != other and (need[both].sum(axis=0) <= free + 1e-9).all(axis=1).any():
            owner = [one if group == other else group for group in owner]
    groups = [[v for v, own in enumerate(owner) if own == group] for group in sorted(set(owner))]
    return [members for members in groups if len(members) > 1]


def _pack(groups: list[list[int]], need: Floats, free: Floats) -> Integers:
    """Nodes of groups, the largest first, each on the first one with room; OPEN of instances in none that fits."""
    place, left = np.full(len(need), OPEN), free.copy()
    largest = free.max(axis=0)
    for members in sorted(groups, key=lambda group: (-float((need[group].sum(axis=0) / largest).max()), group)):
        asked = need[members].sum(axis=0)
        for node in range(len(left)):
            if (left[node] >= asked - 1e-9).all():
                place[members], left[node] = node, left[node] - asked
                break
    return place


def _levels(job: ParallelJob) -> list[int]:
    """Longest path from a source to each operator, in operators."""
    found = [1] * job.operators
    for own in job.order:
        for one in job.edges:
            if one.tail == own:
                found[one.head] = max(found[one.head], found[own] + 1)
    return found


def _spread(job: ParallelJob, nodes: Nodes) -> Counts:
    counts = np.zeros((job.operators, nodes.count), np.int64)
    counts[:, 0] = job.instances
    return counts


def _arrivals_ms(into: Sequence[StreamEdge], counts: Counts, until: Floats, way: Floats) -> Floats:
    """(n,) when records of the slowest stream reach a node, ms after they came to the job."""
    found = np.zeros(way.shape[0])
    for one in into:
        share = counts[one.tail] / counts[one.tail].sum()
        found = np.maximum(found, share @ (until[one.tail][:, None] + way))
    return found
