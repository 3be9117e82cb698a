"""The forecast of a job's source as that of each of its queries: less or more records, and later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from configs.topology import Topology
from models.placement.graph import Floats
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import Rates, edges_of, operators_in_order, rates_of


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


class Reaching(NamedTuple):
    """What reaches a query by the stated rates.

    Attributes:
        rps: records/s of all that it reads.
        of: by number of each query that reads sources alone, the records/s of these that came through it.
        delay_s: until the records of the sources do.
    """

    rps: float
    of: Mapping[int, float]
    delay_s: float


def reaching(topology: Topology, placement: Placement) -> Mapping[int, Reaching]:
    """Return what reaches each query, of which queries that read sources alone, and how much later.

    Args:
        topology: of the job; its sources keep their share of all records.
        placement: of its operators, whose queries take as long as the model says.
    """
    rates, place = rates_of(topology), block_of(tuple(block.operators for block in placement.blocks))
    coming = [
        {edge.tail for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)}
        for number in range(len(placement.blocks))
    ]
    through = {
        first: _sent_through(topology, rates, place, first)
        for first, names in enumerate(coming) if names <= topology.sources.keys()
    }  # fmt: skip
    found: dict[int, Reaching] = {}
    for number, names in enumerate(coming):
        before = [place[name] for name in names if name in place]
        delay_s = max((found[one].delay_s + placement.blocks[one].latency_s for one in before), default=0.0)
        came = {first: sum(sent[name] for name in names) for first, sent in through.items()}
        whole = sum(rates.sent[name] for name in names)
        own = {number: whole} if number in through else {}
        found[number] = Reaching(whole, own | {first: rps for first, rps in came.items() if rps > 0}, delay_s)
    return found


def _sent_through(topology: Topology, rates: Rates, place: Mapping[str, int], first: int) -> dict[str, float]:
    """Records/s of each source and operator that are made of what a query which reads sources has sent."""
    sent = dict.fromkeys(topology.sources, 0.0)
    for name in operators_in_order(topology):
        one = topology.operators[name]
        whole = place[name] == first
        sent[name] = rates.sent[name] if whole else one.selectivity * sum(sent[other] for other in one.of)
    return sent
