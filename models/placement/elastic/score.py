"""Throughput and latency as one number, by which the Md-Stream paper chose the thresholds of its elasticity.

A part of the library: no command calls it.
"""

from __future__ import annotations

SCALE = 1000.0
"""Of the throughput, where latency is in ms."""


def performance_score(
    throughput_rps: float, latency_ms: float, scale: float = SCALE, latency_power: float = 1.0,
    throughput_power: float = 1.0,
) -> float:  # fmt: skip
    """Return the score f of a run, more is better (eq. 19; eq. 20 where both powers are 1: root of scale x T ÷ L).

    The sum of the powers, which the paper prints before the root, is its degree, not a factor: only so its tables come
    out.

    Args:
        throughput_rps: records/s (T).
        latency_ms: above 0 (L).
        scale: of the throughput.
        latency_power: how much latency counts.
        throughput_power: likewise.
    """
    ratio = (scale * throughput_rps) ** throughput_power / latency_ms**latency_power
    return float(ratio ** (1 / (latency_power + throughput_power)))
