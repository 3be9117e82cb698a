"""What each query may take of the time that a job promises: the promise belongs to the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from configs.topology import Topology
from models.placement.plan.candidates import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import edges_of


class PathShare(NamedTuple):
    """Seconds of a query within which a quantile of its records are to be done."""

    block: int
    seconds: float


def path_shares(topology: Topology, placement: Placement) -> list[PathShare]:
    """Return each query's share of the target: what it takes by the model, stretched alike along its slowest path.

    The placement has been found by adding executors where one takes most off what is late for its price, so that what
    queries take by the model are shares at equal marginal cost. On every path the shares come to the target at most.

    Args:
        topology: of the job, with its target.
        placement: of its operators.
    """
    place = block_of(tuple(block.operators for block in placement.blocks))
    links = {
        (one, other) for edge in edges_of(topology)
        if (one := place.get(edge.tail)) is not None and (other := place.get(edge.head)) is not None and one != other
    }  # fmt: skip
    took = [block.latency_s for block in placement.blocks]
    before = _longest(took, links, range(len(took)))
    after = _longest(took, {(other, one) for one, other in links}, range(len(took) - 1, -1, -1))
    return [
        PathShare(number, own * topology.target_s / (before[number] + after[number] - own))
        for number, own in enumerate(took)
    ]  # fmt: skip


def _longest(took: Sequence[float], links: set[tuple[int, int]], order: Sequence[int]) -> list[float]:
    """Of each query the longest path that ends with it, itself included, seconds; `order`: a topological one."""
    found = list(took)
    for number in order:
        found[number] = took[number] + max((found[one] for one, other in links if other == number), default=0.0)
    return found
