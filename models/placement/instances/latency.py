"""Latency of instances on nodes in equilibrium: waits of each operator, and ways between nodes.

Md-Stream paper, section "System latency"; waits are those of M/M/1 (Kleinrock 1975, eq. 3.26).
"""

from __future__ import annotations

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.job import Counts, ParallelJob

SAME_NODE_MS, SAME_DOMAIN_MS = 0.05, 0.5


def distances_ms(nodes: Nodes) -> Floats:
    """Return (n, n) ms from node to node: 0.05 to itself, 0.5 within a domain, else half the round trip."""
    between = nodes.round_trip[np.ix_(nodes.domain, nodes.domain)] / 2
    same = nodes.domain[:, None] == nodes.domain[None, :]
    found = np.where(same, SAME_DOMAIN_MS, between)
    np.fill_diagonal(found, SAME_NODE_MS)
    return found


def waits_ms(job: ParallelJob, counts: Counts) -> Floats:
    """Return (m,) ms that a record waits and is worked on at each operator, 1 ÷ (mu (1 - rho)); infinite from rho 1 on.

    Args:
        job: whose records go to the instances of an operator alike.
        counts: (m, n) instances on nodes.
    """
    free = 1.0 / job.service_s - job.taken_rps / counts.sum(axis=1)
    return np.where(free > 0, 1000.0 / np.where(free > 0, free, 1.0), np.inf)
