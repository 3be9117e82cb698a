"""The forecast of a job's source as that of each of its queries: less or more records, and later."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from configs.topology import Topology
from models.placement.plan.candidates import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import edges_of, rates_of
from models.policy.core.view import LoadAhead


def downstream(ahead: LoadAhead, now_rps: float, factor: float, delay_s: float) -> LoadAhead:
    """Return what reaches a query of a load ahead: each record of it makes `factor` records, `delay_s` later.

    Until the first of it arrives the query gets what the source sends now.

    Args:
        ahead: of the source, of one run.
        now_rps: records/s that the source sends now.
        factor: records that reach the query for one of the source.
        delay_s: that the queries before it take.
    """
    if delay_s <= 0:
        return LoadAhead(ahead.offsets_s, ahead.levels, factor * ahead.rps)
    now = np.full((len(ahead.rps), 1, len(ahead.levels)), now_rps)
    offsets = np.concatenate([[delay_s], ahead.offsets_s + delay_s])
    return LoadAhead(offsets, ahead.levels, factor * np.concatenate([now, ahead.rps], axis=1))


def factors_and_delays(topology: Topology, placement: Placement) -> Mapping[int, tuple[float, float]]:
    """Return of each query the records that reach it for one of all sources, and the seconds until they do.

    Args:
        topology: of the job; its sources keep their share of all records.
        placement: of its operators, whose queries take as long as the model says.
    """
    rates, place = rates_of(topology), block_of(tuple(block.operators for block in placement.blocks))
    every = sum(one.rps for one in topology.sources.values())
    found: dict[int, tuple[float, float]] = {}
    for number in range(len(placement.blocks)):
        coming = [edge for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)]
        before = [place[edge.tail] for edge in coming if edge.tail in place]
        delay_s = max((found[one][1] + placement.blocks[one].latency_s for one in before), default=0.0)
        found[number] = sum(rates.sent[edge.tail] for edge in coming) / max(every, 1e-9), delay_s
    return found
