"""What a state of the job costs (unified batch-stream runtime paper, eq. 3.1), and how far it is from its limits.

The paper adds milliseconds, cores, errors and records/s; here each is divided by its scale in the contract. Limits are
compared as logarithms (our choice): one step size serves all of them, and near saturation their slopes stay bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from models.contract.terms import Terms

HEAD = 0.9
"""Share of an upper limit that is aimed for."""
WIDEST = 2.0
"""Most that a constraint counts, either way: a factor of e² from its limit."""


class Machine(NamedTuple):
    """Watts of a machine that idles, watts more when it is busy, and its busy share, 0 to 1."""

    idle_w: float
    dynamic_w: float
    busy: float


def objective(terms: Terms, latency_ms: float, energy_cores: float, error_rel: float, goodput_rps: float) -> float:
    """Return J = α·L/L_s + β·E/E_s + γ·A/A_s − η·T/T_s (eq. 3.1); less is better.

    Args:
        terms: weights and scales.
        latency_ms: L, of the live records.
        energy_cores: E, busy cores.
        error_rel: A, bound of the relative error of approximate answers.
        goodput_rps: T, records/s that come out within their limit.
    """
    weights, scales = terms.weights, terms.scales
    return (
        weights.alpha * latency_ms / scales.latency_ms
        + weights.beta * energy_cores / scales.energy_cores
        + weights.gamma * error_rel / scales.error_rel
        - weights.eta * goodput_rps / scales.goodput_rps
    )


def over_upper(value: float, limit: float) -> float:
    """Return g = ln(y/(0.9·limit)), clipped to ±2; above 0 where less than a tenth of an upper limit is free.

    Args:
        value: y, at least 0.
        limit: above 0, in the same unit.
    """
    return _clipped(math.log(value) - math.log(HEAD * limit)) if value > 0 else -WIDEST


def under_lower(value: float, limit: float) -> float:
    """Return g = ln(limit/y), clipped to ±2; above 0 where a value, at least 0, is under a lower limit above 0."""
    return _clipped(math.log(limit) - math.log(value)) if value > 0 else WIDEST


def over_drift(value: float, limit: float, scale: float) -> float:
    """Return g = (y − limit)/scale, clipped to ±2, of a value that may be negative, such as how fast a lag grows."""
    return _clipped((value - limit) / scale)


def energy_joules(machines: Iterable[Machine], seconds: float) -> float:
    """Return Σ (P_idle + P_dynamic·busy)·Δt over the machines, joules."""
    return math.fsum(one.idle_w + one.dynamic_w * one.busy for one in machines) * seconds


def _clipped(value: float) -> float:
    return min(max(value, -WIDEST), WIDEST)
