"""What a placement comes to where its queries are followed batch by batch, beside the sum that the model tells."""

from __future__ import annotations

import numpy as np

from models.placement.graph import Floats
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import CATCH_UP, Measure, Placement, full_batch_s
from models.placement.plan.wiring import way_s
from models.placement.rates import edges_of
from models.placement.twin.queries import QueryGraph, follow_queries, path_latencies_s

SETTLE_S, COUNTED_S, TRIGGERS = 60, 240, 20
"""Seconds that are followed at least: before anything counts, and after, for these to be done; and in which records are
made that count, of which there are so many triggers at least."""
SEED = 0
"""Of the batches' durations."""
NOISE = 0.1
"""Standard deviation of the logarithm of a batch's duration."""
EVERY_S, MOST = 0.05, 100_000
"""From one record that counts to the next, at least; and how many count at most, where triggers are long."""


def query_graph(measure: Measure, placement: Placement) -> QueryGraph:
    """Return a placement's queries as they are followed: the work of the model, on the cores that they have.

    Args:
        measure: of the load by which the placement was measured.
        placement: of the job's operators.
    """
    topology, edges = measure.topology, list(edges_of(measure.topology))
    place, many = block_of(tuple(block.operators for block in placement.blocks)), len(placement.blocks)
    first, tail, ways, busy = [0], list[int](), list[float](), list[float]()
    for number, block in enumerate(placement.blocks):
        read = [edge for edge in edges if place.get(edge.head) == number != place.get(edge.tail)]
        offered = sum(measure.rates.sent[edge.tail] for edge in read)
        cores = block.executors * topology.clusters[block.cluster].executor_cores
        for edge in read:
            writer = place.get(edge.tail)
            away = topology.broker if writer is None else placement.blocks[writer].cluster
            tail.append(-1 if writer is None else writer)
            ways.append(way_s(topology, away, block.cluster))
            busy.append(block.load / cores * measure.rates.sent[edge.tail] / offered if offered else 0.0)
        first.append(len(tail))
    ends = {place[edge.tail] for edge in edges if not edge.head}
    return QueryGraph(
        np.full(many, topology.overhead_s), np.full(many, topology.trigger_s),
        np.full(many, CATCH_UP * topology.trigger_s), np.array(first), np.array(tail), np.array(ways), np.array(busy),
        np.isin(np.arange(many), list(ends)),
    )  # fmt: skip


def followed_quantile_s(measure: Measure, placement: Placement) -> float:
    """Return the topology's quantile of the time from production to the slowest results, seconds.

    Infinite where a query falls behind by so much that they do not come in the time that is followed: at least that of
    two full batches of each query, and of two more.

    Args:
        measure: of the load by which the placement was measured.
        placement: of the job's operators.
    """
    queries, topology = query_graph(measure, placement), measure.topology
    around_s = max(SETTLE_S, int(np.ceil(2 * (len(placement.blocks) + 1) * full_batch_s(topology))))
    counted_s = max(COUNTED_S, int(np.ceil(TRIGGERS * topology.trigger_s)))
    seconds = counted_s + 2 * around_s
    batches = int(np.ceil(seconds / topology.trigger_s))
    normal = np.random.default_rng(SEED).standard_normal((len(placement.blocks), batches))
    made = follow_queries(queries, np.ones(seconds), np.exp(NOISE * normal))
    every_s = max(EVERY_S, counted_s / MOST)
    latency_s: Floats = path_latencies_s(queries, made, np.arange(around_s, around_s + counted_s, every_s))
    return float(np.quantile(latency_s, topology.quantile, method="higher"))
