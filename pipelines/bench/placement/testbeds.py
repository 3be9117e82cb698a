"""The papers' testbeds in the twin. What the papers do not print was fixed before anything was compared.

Md-Stream: 12 workers of 2 cores and 2 GB in 4 domains. Pa-Stream: 9 workers of three kinds in one domain. Round trips
between domains and parallelism of Md-Stream's jobs: of our specification of it. Ours alone: service times, what an
instance asks for (the cores that it keeps busy, a tenth at least, and 0.3 GB), bytes, and records under way (so that
Storm's default has about the latency and throughput that the papers print).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob, StreamEdge

ROUND_TRIPS_MS = {(0, 1): 10, (0, 2): 20, (0, 3): 40, (1, 2): 15, (1, 3): 30, (2, 3): 25}


class Testbed(NamedTuple):
    """A job on its nodes.

    Attributes:
        name: of it.
        job: at the rate at which its sources would send.
        nodes: of it.
        limit_ms: latency over which instances are added.
    """

    name: str
    job: ParallelJob
    nodes: Nodes
    limit_ms: float


def four_domains(trips: float) -> Nodes:
    """Return Md-Stream's workers; `trips`: factor of the round trips between domains."""
    between = np.zeros((4, 4))
    for (one, other), ms in ROUND_TRIPS_MS.items():
        between[one, other] = between[other, one] = trips * ms
    return Nodes(
        np.tile([2.0, 2.0], (12, 1)), np.zeros((12, 2)), np.repeat(np.arange(4), 3), between,
        slots=np.full(12, 4), bandwidth_mbps=np.full(12, 100.0),
    )  # fmt: skip


def three_kinds() -> Nodes:
    """Return Pa-Stream's workers; they are one domain, with no distance that a factor could change."""
    kinds, band = np.array([[1.0, 2.0], [1.0, 4.0], [4.0, 4.0]]), np.array([200.0, 300.0, 100.0])
    return Nodes(
        np.repeat(kinds, 3, axis=0), np.zeros((9, 2)), np.zeros(9, np.int64), np.zeros((1, 1)),
        slots=np.full(9, 4), bandwidth_mbps=np.repeat(band, 3),
    )  # fmt: skip


def chain(
    rps: float, service_ms: tuple[float, ...], instances: tuple[int, ...], pending: float, service: float
) -> ParallelJob:  # fmt: skip
    """Return a chain of operators, each of which makes one record of one.

    Args:
        rps: of the source.
        service_ms: of each operator.
        instances: of each.
        pending: records under way.
        service: factor of the service times.
    """
    many, service_s = np.array(instances), service * np.array(service_ms) / 1000
    arrivals = np.zeros(len(many))
    arrivals[0] = rps
    busy = np.clip(rps * service_s / many, 0.1, 1.0)
    edges = tuple(StreamEdge(own, own + 1, 1.0, 200.0) for own in range(len(many) - 1))
    need = np.column_stack([busy, np.full(len(many), 0.3)])
    return ParallelJob(arrivals, service_s, many, need, edges, pending=pending)


def testbeds(trips: float = 1.0, service: float = 1.0) -> list[Testbed]:
    """Return all testbeds, with factors of round trips and service times."""
    return [
        Testbed("words on Md-Stream's", chain(3_600, (0.3, 1.2, 1.2), (2, 4, 4), 110, service),
                four_domains(trips), 20.0),
        Testbed("top-n on Md-Stream's", chain(3_600, (0.3, 1.2, 1.0, 0.2), (2, 4, 4, 1), 110, service),
                four_domains(trips), 20.0),
        Testbed("words on Pa-Stream's", chain(1_000, (1.0, 5.0, 5.0), (2, 3, 3), 25, service),
                three_kinds(), 25.0),
    ]  # fmt: skip
