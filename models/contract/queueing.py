"""Queues in closed form: M/M/1, M/M/c and micro-batches, finite and differentiable beyond saturation.

The unified batch-stream runtime paper takes ρ/(1 − ρ) for a queue's length (its predictive model behind eq. 3.1); it is
the number in the system. All of it goes to infinity at ρ = 1, where a controller still needs a slope that leads back:
beyond a point near saturation each 1/x is continued by its own tangent (our choice).
"""

from __future__ import annotations

import math
from typing import NamedTuple

SATURATED = 0.95
"""Utilisation of an M/M/1 queue from which on its formulas are continued by their tangent."""
LEAST_IDLE = 0.001
"""Idle share of a query that runs batches back to back, under which their time is continued by its tangent."""


class MicroBatchModel(NamedTuple):
    """Batches of a query in equilibrium; a record waits for the next batch to begin, and for that one to end.

    Attributes:
        batch_s: time of a batch, seconds.
        interval_s: from the start of a batch to that of the next, seconds.
        stable: whether the backlog stays bounded; if not, the times are a continuation.
    """

    batch_s: float
    interval_s: float
    stable: bool

    @property
    def mean_s(self) -> float:
        """Mean latency of a record, seconds."""
        return self.interval_s / 2 + self.batch_s

    def quantile_s(self, level: float) -> float:
        """Return a quantile of the latency, seconds; it is uniform from `batch_s` to `batch_s + interval_s`."""
        return level * self.interval_s + self.batch_s

    def share_within(self, limit_s: float) -> float:
        """Return the share of records whose latency is at most the limit; 0 where the backlog grows."""
        return min(max((limit_s - self.batch_s) / self.interval_s, 0.0), 1.0) if self.stable else 0.0


def number_in_system(utilisation: float) -> float:
    """Return the mean number of records in an M/M/1 system, ρ/(1 − ρ), continued by its tangent beyond ρ = 0.95."""
    if utilisation <= SATURATED:
        return utilisation / (1 - utilisation)
    return SATURATED / (1 - SATURATED) + (utilisation - SATURATED) / (1 - SATURATED) ** 2


def mean_sojourn_s(arrival_rps: float, service_rps: float) -> float:
    """Return the mean time in an M/M/1 system, 1/(μ − λ), in seconds, continued beyond ρ = 0.95.

    Raises:
        ValueError: the service rate is not above 0.
    """
    return _inverse(_served(service_rps) - arrival_rps, (1 - SATURATED) * service_rps)


def sojourn_quantile_s(arrival_rps: float, service_rps: float, level: float) -> float:
    """Return a quantile of the time in an M/M/1 system, −ln(1 − q)/(μ − λ), in seconds, continued beyond ρ = 0.95.

    Args:
        arrival_rps: λ, records/s.
        service_rps: μ, records/s, above 0.
        level: q, in (0, 1).

    Raises:
        ValueError: the service rate is not above 0, or the level is 1.
    """
    return -math.log(1 - level) * mean_sojourn_s(arrival_rps, service_rps)


def share_within(arrival_rps: float, service_rps: float, limit_s: float) -> float:
    """Return P(L ≤ limit) = 1 − exp(−(μ − λ)·limit) of an M/M/1 system; 0 from saturation on."""
    return -math.expm1(-max(service_rps - arrival_rps, 0.0) * limit_s)


def delay_probability(servers: int, erlangs: float) -> float:
    """Return Erlang C: the probability that a record finds all servers of an M/M/c system busy; 1 from saturation on.

    Args:
        servers: c, at least 1.
        erlangs: offered load λ/μ.
    """
    if erlangs >= servers:
        return 1.0
    blocked = 1.0  # Erlang B by its recursion, which no factorial overflows
    for count in range(1, servers + 1):
        blocked = erlangs * blocked / (count + erlangs * blocked)
    return blocked / (1 - erlangs / servers * (1 - blocked))


def mean_wait_s(servers: int, arrival_rps: float, service_rps: float) -> float:
    """Return the mean wait before service in an M/M/c system, seconds; infinite from saturation on.

    Args:
        servers: c, at least 1.
        arrival_rps: λ, records/s.
        service_rps: μ of one server, records/s, above 0.

    Raises:
        ValueError: the service rate is not above 0.
    """
    slack = servers * _served(service_rps) - arrival_rps
    return delay_probability(servers, arrival_rps / service_rps) / slack if slack > 0 else math.inf


def micro_batch(arrival_rps: float, service_rps: float, overhead_s: float, trigger_s: float) -> MicroBatchModel:
    """Return the equilibrium of batches that take b0 + records/μ and start at a trigger, or back to back if longer.

    A batch takes T = b0 + ρ·I while that is at most I, else T = b0/(1 − ρ); the larger of the two is always the right
    one. At ρ = 0.999 the second is continued by its tangent.

    Args:
        arrival_rps: λ, records/s.
        service_rps: μ of the whole query, records/s, above 0.
        overhead_s: b0, fixed seconds of a batch, at least 0.
        trigger_s: I, seconds from trigger to trigger, above 0.

    Raises:
        ValueError: the service rate is not above 0.
    """
    load = arrival_rps / _served(service_rps)
    batch_s = max(overhead_s + load * trigger_s, overhead_s * _inverse(1 - load, LEAST_IDLE))
    return MicroBatchModel(batch_s, max(trigger_s, batch_s), arrival_rps < service_rps)


def open_windows(size: float, slide: float, lateness: float = 0.0) -> int:
    """Return how many windows a key has open: (size + lateness)/slide, rounded up; one unit of time for all three."""
    return math.ceil((size + lateness) / slide)


def state_bytes(keys: float, width: float, value_bytes: float, overhead: float = 0.0) -> float:
    """Return the bytes of a keyed state: keys · width · bytes of a value, more by the share `overhead`."""
    return keys * width * value_bytes * (1 + overhead)


def _inverse(slack: float, least: float) -> float:
    """1/slack, below `least` continued by its tangent."""
    return 1 / slack if slack >= least else (1 + (least - slack) / least) / least


def _served(service_rps: float) -> float:
    if not service_rps > 0:
        raise ValueError(f"service_rps={service_rps}: a rate above 0 is expected. Start from a calibrated prior")
    return service_rps
