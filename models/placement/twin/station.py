"""A queue with one or more servers, as a mean number of records that follows arrivals and service through time.

Pointwise stationary fluid flow (Wang, Tipper and Banerjee 1996): dx/dt = arrivals - c mu rho, where rho is the load
at which x records are in an M/M/c queue in equilibrium. There it is exact; an overloaded queue grows by what is not
served.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.contract import queueing

delay_probability = numba.njit(cache=True)(queueing.delay_probability)
"""Compiled here: who reckons with batches alone does not wait a second for numba."""
HALVINGS = 60
STEP_S = 0.25
"""Of the twin: what leaves a queue in one step reaches the next queue in the next one, seconds."""


@numba.njit(cache=True)
def records_at(servers: int, load: float) -> float:
    """Return the mean number of records in an M/M/c queue at a load below 1 of each server."""
    return servers * load + delay_probability(servers, servers * load) * load / (1.0 - load)


@numba.njit(cache=True)
def load_of(records: float, servers: int) -> float:
    """Return the load of each server at which so many records are in the queue: the inverse of `records_at`."""
    if servers == 1:
        return records / (1.0 + records)
    return _solve(records, servers, 0.0)


@numba.njit(cache=True)
def follow_queue(records: float, servers: int, service_rps: float, arrivals_rps: float, step_s: float) -> Any:
    """Return the records in a queue after a step, and the records/s that left it; stable for any length of the step.

    Args:
        records: in the queue at first.
        servers: of it.
        service_rps: of one server; 0: nothing leaves.
        arrivals_rps: of the step.
        step_s: its length.
    """
    there = records + arrivals_rps * step_s
    if service_rps <= 0.0 or there <= 0.0:
        return there, 0.0
    most = servers * service_rps * step_s
    if servers == 1:
        half = (1.0 - there + most) / 2.0
        after = max(np.sqrt(half * half + there) - half, 0.0)
    else:
        after = max(there - most * _solve(there, servers, most), 0.0)
    return after, (there - after) / step_s


@numba.njit(cache=True)
def time_in_queue_s(records: float, servers: int, service_rps: float) -> float:
    """Return how long a record that comes now is there, queue and service: records over those that leave (Little)."""
    if service_rps <= 0.0:
        return np.inf
    if servers == 1:
        return (1.0 + records) / service_rps
    if records <= 1e-12:
        return 1.0 / service_rps
    return records / (servers * service_rps * load_of(records, servers))


@numba.njit(cache=True)
def _solve(there: float, servers: int, most: float) -> float:
    """The load at which what is in the queue and `most` times the load come to `there`."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if records_at(servers, middle) + most * middle < there:
            low = middle
        else:
            high = middle
    return low
