"""A step of a job's instances: what they serve, how long a record stays, and how busy their nodes are."""

from __future__ import annotations

from typing import Any

import numba

from models.placement.twin.nodes_shared import mean_speed
from models.placement.twin.station import STEP_S, follow_queue, load_of, time_in_queue_s

LEAST_SPEED = 1e-3
"""Of an operator's instances, as a share of full speed: below it their load counts as with this."""


@numba.njit(cache=True)
def serve_operators(
    places: Any, job: Any, state: Any, share: Any, let_in: float, before: Any, stay_s: Any, load: Any
) -> None:
    """Serve a step of all instances; the state, `stay_s` and `load` are changed.

    Args:
        places: of the instances.
        job: a `JobOnNodes`.
        state: of the twin; its records that came are served.
        share: (m, n) of an operator's records that go to each node.
        let_in: multiple of the job's arrivals from outside.
        before: (m,) records that waited at the begin of a report interval, else zeros.
        stay_s: (m, n) filled: how long a record that comes now is at an instance.
        load: (m,) to which is added what arrivals and these ask of each operator, over what it has in the interval.
    """
    came, service_s, counts = state.came, job.service_s, job.counts
    for own in range(len(counts)):
        outside, asked = job.arrivals[own] * let_in, 0.0
        for node in places.host[places.first_host[own] : places.first_host[own + 1]]:
            rps = came[own, node] + outside * share[own, node]
            asked += rps
            state.served[own, node], stay_s[own, node], state.busy[own, node] = _serve(
                state.at, own, node, counts[own, node], state.speed[own, node] / service_s[own], rps, job.pooled
            )
        own_s = service_s[own] / max(mean_speed(places, state.speed, share, own), LEAST_SPEED)
        load[own] += (asked * STEP_S + before[own]) * own_s / (counts[own].sum() * job.every * STEP_S)


@numba.njit(cache=True)
def add_busy(places: Any, job: Any, state: Any, busy: Any) -> None:
    """Add to (n,) `busy` the share of each node's cores that was busy in a step, as its part of a report interval."""
    for node in range(len(busy)):
        used = 0.0
        for own in places.guest[places.first_guest[node] : places.first_guest[node + 1]]:
            used += job.counts[own, node] * state.busy[own, node] * state.speed[own, node]
        busy[node] += used / max(job.cores[node], 1e-9) / job.every


@numba.njit(cache=True)
def _serve(at: Any, own: int, node: int, many: int, service_rps: float, rps: float, pooled: bool) -> Any:
    """Serve a step of an operator's instances on a node: records/s that left, seconds of a record there, busy share."""
    queues, servers = (1, many) if pooled else (many, 1)
    after, served = follow_queue(at[own, node] / queues, servers, service_rps, rps / queues, STEP_S)
    at[own, node] = after * queues
    return served * queues, time_in_queue_s(after, servers, service_rps), load_of(after, servers)
