"""What live records waited in an interval, from what its batches have told."""

from __future__ import annotations

from collections.abc import Mapping

from models.contract.terms import LIVE, Terms

MEASURED = ((0.5, "latency_p50_s"), (0.95, "latency_p95_s"), (1.0, "latency_max_s"))
"""Quantiles of a batch's latency that an agent measures."""
LEAST_LEVEL, ROUNDING = 0.95, 1e-9
"""Least quantile of a batch that stands for a higher one of an interval: batches are not all alike."""


def interval_latencies(
    terms: Terms, worst_s: Mapping[str, float], batches: int, waits: bool = True
) -> dict[str, float]:
    """Each live path's measured latency, ms, of the interval: from the quantiles that its batches have told.

    If the slowest hundredth of the records of n batches is in one of them, it is n hundredths of that one: the worst
    batch's quantile 1 - n (1 - q), or the next one above it that is measured, is that of the interval.
    Where no batch told any because there was no record, nobody waited: 0, or a limit that was broken by the last
    records before a quiet night would count as broken all through it.

    Args:
        terms: with the paths.
        worst_s: the worst of each measured quantile, by its field, seconds.
        batches: of the interval.
        waits: whether a live record came in it, or waits at its end.
    """
    if not worst_s and not waits:
        return {path.name: 0.0 for path in terms.paths if path.kind == LIVE}
    found = {}
    for path in terms.paths:
        if path.kind != LIVE:
            continue
        needed = max(1 - (1 - path.quantile) * max(batches, 1), min(path.quantile, LEAST_LEVEL))
        able = (name for level, name in MEASURED if needed <= level + ROUNDING)
        if (name := next((name for name in able if name in worst_s), None)) is not None:
            found[path.name] = 1000 * worst_s[name]
    return found
