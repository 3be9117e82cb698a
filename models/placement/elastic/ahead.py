"""The forecast of a job's source as that of each of its queries: less or more records, and later."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from configs.topology import Topology
from models.placement.graph import Floats
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import edges_of, rates_of


def downstream(ahead: Floats, now_rps: float | None, factor: float, delay_s: float, step_s: float) -> Floats:
    """Return the forecast of a query that what a forecast is for reaches later: each record makes `factor` of it.

    Until the first record of the forecast arrives the query gets what comes now.

    Args:
        ahead: (steps, levels) records/s.
        now_rps: records/s that come now; None: as in the first step.
        factor: records that reach the query for one of these.
        delay_s: that the queries before it take.
        step_s: length of a step.

    Returns:
        (steps, levels) records/s.
    """
    whole, rest_s = divmod(delay_s, step_s)
    whole = min(whole, len(ahead))
    before = ahead[:1] if now_rps is None else np.full((1, ahead.shape[1]), now_rps)
    came = np.concatenate([np.repeat(before, int(whole) + 1, axis=0), ahead])
    share, steps = rest_s / step_s, len(ahead)
    return factor * (share * came[:steps] + (1 - share) * came[1 : steps + 1])


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
        coming = {edge.tail for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)}
        before = [place[name] for name in coming if name in place]
        delay_s = max((found[one][1] + placement.blocks[one].latency_s for one in before), default=0.0)
        found[number] = sum(rates.sent[name] for name in coming) / max(every, 1e-9), delay_s
    return found
