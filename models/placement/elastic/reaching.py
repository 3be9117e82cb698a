"""What can reach a job's later queries at most: whoever is before them sends on only what it can work on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from configs.topology import Topology
from models.placement.elastic.demand import ScaledStage, needs_of
from models.placement.elastic.offload import known_number
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import edges_of, rates_of
from models.policy.core.batch_time import BatchTime
from models.policy.core.rate_spread import slot_quantile

AT_BEST = 0.95
"""Quantile of what a slot may do: a forecast that is cut too low costs more than one that is not cut."""
FLOOD = 1e9
"""Of the sources' rates: more than any query can do, so that each sends on the most that it can."""


def most_reaching(topology: Topology, placement: Placement, able_rps: Mapping[int, float]) -> list[float]:
    """Return the records/s that can reach each query at most; beyond all bounds where nothing before it has any.

    By the rule of the graph (`needs_of`, DS2): a query that cannot have the executors that it needs sends on what those
    that it may have can do. Where two of which only one is full come together that is more than ever comes.

    Args:
        topology: of the job, by whose rates one query's records make another's.
        placement: of its operators.
        able_rps: by number of the query, records/s that it can take with all executors that it may have; one that is
            left out can take any.
    """
    blocks = tuple(block.operators for block in placement.blocks)
    sent, place = rates_of(topology).sent, block_of(blocks)
    coming = [
        {edge.tail for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)}
        for number in range(len(blocks))
    ]
    offered = [sum(sent[name] for name in names) for names in coming]
    taken: dict[str, dict[str, float]] = {}
    for number, names in enumerate(coming):
        shares = taken.setdefault(str(number), {})
        for name in names & place.keys():
            before = place[name]
            shares[str(before)] = shares.get(str(before), 0.0) + sent[name] / max(offered[before], 1e-9)
    outside = {
        str(number): FLOOD * sum(sent[name] for name in names - place.keys()) for number, names in enumerate(coming)
    }
    whole = {str(number): ScaledStage(able_rps.get(number, math.inf), most=1) for number in range(len(blocks))}
    found = needs_of(whole, taken, outside)
    return [found[str(number)].rps for number in range(len(blocks))]


def slot_rps(inputs: Mapping[str, Any]) -> float | None:
    """Return the records/s that a slot of a query works on at best, by what its autoscaler has learned.

    Args:
        inputs: of a decision about it.

    Returns:
        None before its batches have told.
    """
    names = ("overhead_s", "per_record_s", "scatter", "processed_rps")
    overhead_s, per_record_s, scatter, worked_rps = (known_number(inputs.get(name)) for name in names)
    if not (per_record_s and scatter and worked_rps):
        return None
    return slot_quantile(BatchTime.guess(overhead_s, per_record_s), scatter, AT_BEST)
