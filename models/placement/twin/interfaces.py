"""Network interfaces of nodes: what instances made goes out, and comes in elsewhere a step later."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.placement.twin.station import STEP_S, follow_queue, time_in_queue_s


@numba.njit(cache=True)
def send_records(streams: Any, state: Any, share: Any, bandwidth: Any, alive: Any, out_s: Any, in_s: Any) -> None:
    """A step of the interfaces: what instances made goes out, what went out in the step before comes in."""
    e, n = state.leaving.shape
    made = np.zeros((e, n, n))
    state.came[:] = 0.0
    for edge in range(e):
        for node in range(n):
            rps = streams.factor[edge] * state.served[streams.tail[edge], node]
            for to in range(n):
                made[edge, node, to] = rps * share[streams.head[edge], to]
            state.came[streams.head[edge], node] += made[edge, node, node]
            made[edge, node, node] = 0.0
    arriving = np.zeros((e, n))
    for edge in range(e):
        for to in range(n):
            for node in range(n):
                arriving[edge, to] += state.sent[edge, node, to]
    for node in range(n):
        offered = np.zeros(e)
        for edge in range(e):
            for to in range(n):
                offered[edge] += made[edge, node, to]
        works = alive[node] > 0.0
        passed, out_s[node] = _pass(state.leaving, node, offered, streams.bits, bandwidth[node], works)
        for edge in range(e):
            for to in range(n):
                went = share[streams.head[edge], to] if to != node else 0.0
                away = 1.0 - share[streams.head[edge], node]
                state.sent[edge, node, to] = passed[edge] * went / away if away > 1e-9 else 0.0
            if 1.0 - share[streams.head[edge], node] <= 1e-9:  # whom they were sent to has come here since
                state.came[streams.head[edge], node] += passed[edge]
        came, in_s[node] = _pass(state.coming, node, arriving[:, node], streams.bits, bandwidth[node], works)
        for edge in range(e):
            state.came[streams.head[edge], node] += came[edge]


@numba.njit(cache=True)
def _pass(queued: Any, node: int, offered: Any, bits: Any, bandwidth: float, works: bool) -> Any:
    """A step of an interface, first come first served: (E,) records/s that pass, and seconds of a mean record in it."""
    there = queued[:, node] + offered * STEP_S
    total = there.sum()
    if not works:
        queued[:, node] = there
        return np.zeros(len(there)), 0.0
    if np.isinf(bandwidth) or total <= 0.0:
        queued[:, node] = 0.0
        return there / STEP_S, 0.0
    service_rps = bandwidth * total / (there * bits).sum()
    after, _ = follow_queue(queued[:, node].sum(), 1, service_rps, offered.sum(), STEP_S)
    queued[:, node] = there * (after / total)
    return (there - queued[:, node]) / STEP_S, time_in_queue_s(after, 1, service_rps)
