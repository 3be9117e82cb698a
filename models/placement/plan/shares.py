"""What each query may take of the time that a job promises: the promise belongs to the path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from configs.topology import Topology
from models.contract.queueing import micro_batch
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import Block, Placement, fewest_executors
from models.placement.rates import edges_of, memory_of


class PathShare(NamedTuple):
    """Seconds of a query within which a quantile of its records are to be done."""

    block: int
    seconds: float


def path_shares(topology: Topology, placement: Placement) -> list[PathShare]:
    """Return each query's share of the target: what it takes by the model, stretched alike along its slowest path.

    They are not shares at equal marginal cost: where the target is kept by queries that are as busy as they are to be,
    no executor was ever added to make one quicker, and what they take is what their load and trigger make of it. Only
    of a placement that missed the target at first were executors added where one takes most off what is late for its
    price. On every path the shares come to the target at most. A query that has fewer executors than its load needs is
    taken to have these.

    Args:
        topology: of the job, with its target.
        placement: of its operators.
    """
    place = block_of(tuple(block.operators for block in placement.blocks))
    links = {
        (one, other) for edge in edges_of(topology)
        if (one := place.get(edge.tail)) is not None and (other := place.get(edge.head)) is not None and one != other
    }  # fmt: skip
    took = [_takes_s(topology, block) for block in placement.blocks]
    before = _longest(took, links, range(len(took)))
    after = _longest(took, {(other, one) for one, other in links}, range(len(took) - 1, -1, -1))
    return [
        PathShare(number, own * topology.target_s / (before[number] + after[number] - own))
        for number, own in enumerate(took)
    ]  # fmt: skip


def most_executors(
    topology: Topology, placement: Placement, number: int, cluster: str, kept: Callable[[int], int] = lambda at: 1
) -> int:
    """Return how many executors a query may have on a cluster, beside those of the other queries.

    Not more than its partitions have tasks for, and than the job's quota leaves; 0 where its memory has no room.

    Args:
        topology: of the job.
        placement: of its operators.
        number: of the query.
        cluster: where it would be.
        kept: executors of another query that stay its own.
    """
    own = topology.clusters[cluster]
    others = {at: one for at, one in enumerate(placement.blocks) if at != number and one.cluster == cluster}
    names = [*placement.blocks[number].operators, *(name for one in others.values() for name in one.operators)]
    if memory_of(topology, names) > own.memory_gb * 1e9:
        return 0
    taken = own.executor_cores * sum(map(kept, others))
    room = own.cores - topology.driver_cores * (len(others) + 1) - taken
    if topology.quota_cores is not None:
        room = min(room, topology.quota_cores - sum(
            kept(at) * topology.clusters[one.cluster].executor_cores
            for at, one in enumerate(placement.blocks) if at != number
        ))  # fmt: skip
    return max(min(room, max(topology.partitions, own.executor_cores)) // own.executor_cores, 0)


def allowed_clusters(topology: Topology, operators: Sequence[str]) -> list[str]:
    """Return the clusters on which a query of some operators may run: all, or that to which one of them is pinned."""
    pinned = [pin for name in operators if (pin := topology.operators[name].cluster) is not None]
    return pinned[:1] or [*topology.clusters]


def _takes_s(topology: Topology, block: Block) -> float:
    """What a query takes with the executors that its load needs, where it has fewer: no seconds that it could promise.

    It has fewer where the autoscaler decided them for less than the load that the topology states.
    """
    cluster = topology.clusters.get(block.cluster)
    if cluster is None or (fewest := fewest_executors(block.load, cluster.executor_cores)) <= block.executors:
        return block.latency_s
    batch = micro_batch(block.load, fewest * cluster.executor_cores, topology.overhead_s, topology.trigger_s)
    return batch.quantile_s(topology.quantile)


def _longest(took: Sequence[float], links: set[tuple[int, int]], order: Sequence[int]) -> list[float]:
    """Of each query the longest path that ends with it, itself included, seconds; `order`: a topological one."""
    found = list(took)
    for number in order:
        found[number] = took[number] + max((found[one] for one, other in links if other == number), default=0.0)
    return found
