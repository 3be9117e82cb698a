"""How long a record that comes now will be under way."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def latencies_s(
    streams: Any, places: Any, job: Any, share: Any, stay_s: Any, out_s: Any, in_s: Any, served: Any
) -> Any:
    """Return how long a record that comes now is under way, seconds: mean of the records, and on the slowest path.

    Args:
        streams: edges of the job.
        places: of its instances.
        job: a `JobOnNodes`.
        share: (m, n) of an operator's records that go to each node.
        stay_s: (m, n) at an instance, queue and service.
        out_s: (n,) on the interface of the node that is left.
        in_s: (n,) on that of the node to which it goes.
        served: (m, n) records/s that left the instances in the last step.
    """
    m = len(stay_s)
    until, slowest, total, count = np.zeros(m), np.zeros(m), 0.0, 0.0
    weight = np.zeros(m)
    for own in job.order:
        here = 0.0
        for node in places.host[places.first_host[own] : places.first_host[own + 1]]:
            if share[own, node] > 0.0:
                here += share[own, node] * stay_s[own, node]
        slowest[own] += here
        own_mean = here + (until[own] / weight[own] if weight[own] > 0 else 0.0)
        rps = served[own].sum()
        if job.last[own] and rps > 0.0 and np.isfinite(own_mean):
            total += own_mean * rps
            count += rps
        for edge in places.stream[places.first_stream[own] : places.first_stream[own + 1]]:
            head, between = streams.head[edge], 0.0
            for node in places.source[places.first_source[edge] : places.first_source[edge + 1]]:
                for to in places.target[places.first_target[edge] : places.first_target[edge + 1]]:
                    part = share[own, node] * share[head, to]
                    between += part * (job.way_s[node, to] + (out_s[node] + in_s[to] if node != to else 0.0))
            flow = rps * streams.factor[edge] + 1e-12
            if np.isfinite(own_mean):
                until[head] += flow * (own_mean + between)
                weight[head] += flow
            slowest[head] = max(slowest[head], slowest[own] + between)
    top = slowest[job.last].max()
    return (total / count if count > 0 else top), top
