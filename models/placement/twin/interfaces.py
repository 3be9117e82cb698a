"""Network interfaces of nodes: what instances made goes out, and comes in elsewhere a step later."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.placement.twin.station import STEP_S, follow_queue, time_in_queue_s


@numba.njit(cache=True)
def send_records(
    streams: Any, places: Any, state: Any, share: Any, bandwidth: Any, alive: Any, out_s: Any, in_s: Any
) -> None:
    """Run a step of the interfaces: what instances made goes out, what went out in the step before comes in."""
    e, n = state.leaving.shape
    offered, arriving = np.zeros((e, n)), np.zeros((e, n))
    state.came[:] = 0.0
    for edge in range(e):
        head = streams.head[edge]
        for node in places.source[places.first_source[edge] : places.first_source[edge + 1]]:
            rps = streams.factor[edge] * state.served[streams.tail[edge], node]
            for to in places.target[places.first_target[edge] : places.first_target[edge + 1]]:
                if to == node:
                    state.came[head, node] += rps * share[head, to]
                else:
                    offered[edge, node] += rps * share[head, to]
                arriving[edge, to] += state.sent[edge, node, to]
    for node in range(n):
        works = alive[node] > 0.0
        out = places.out[places.first_out[node] : places.first_out[node + 1]]
        passed, out_s[node] = _pass(state.leaving, node, out, offered, streams.bits, bandwidth[node], works)
        for at, edge in enumerate(out):
            head, rps = streams.head[edge], passed[at]
            away = 1.0 - share[head, node]
            for to in places.target[places.first_target[edge] : places.first_target[edge + 1]]:
                went = share[head, to] if to != node else 0.0
                state.sent[edge, node, to] = rps * went / away if away > 1e-9 else 0.0
            if away <= 1e-9:  # whom they were sent to has come here since
                state.came[head, node] += rps
        into = places.into[places.first_into[node] : places.first_into[node + 1]]
        came, in_s[node] = _pass(state.coming, node, into, arriving, streams.bits, bandwidth[node], works)
        for at, edge in enumerate(into):
            state.came[streams.head[edge], node] += came[at]


@numba.njit(cache=True)
def _pass(queued: Any, node: int, edges: Any, offered: Any, bits: Any, bandwidth: float, works: bool) -> Any:
    """A step of an interface, first come first served: records/s of streams that pass, and seconds of a mean record."""
    there, size, before, more = np.zeros(len(edges)), 0.0, 0.0, 0.0
    for at, edge in enumerate(edges):
        there[at] = queued[edge, node] + offered[edge, node] * STEP_S
        size += there[at] * bits[edge]
        before += queued[edge, node]
        more += offered[edge, node]
    total, left, stay_s = there.sum(), 0.0, 0.0
    if not works:
        left = 1.0
    elif np.isfinite(bandwidth) and total > 0.0:
        service_rps = bandwidth * total / size
        after, _ = follow_queue(before, 1, service_rps, more, STEP_S)
        left, stay_s = after / total, time_in_queue_s(after, 1, service_rps)
    for at, edge in enumerate(edges):
        queued[edge, node] = there[at] * left
        there[at] = (there[at] - queued[edge, node]) / STEP_S
    return there, stay_s
