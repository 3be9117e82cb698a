"""Latencies as figures: percentiles by nearest rank, per run and over runs, differences to a floor, a curve to draw."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

Runs = Sequence[Sequence[int]]
"""Nanoseconds of every event, a sequence per run."""
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "max": 1.0}
_DECADES, _PER_DECADE = 5, 40


def percentiles_us(took_ns: Sequence[int] | np.ndarray) -> dict[str, float]:
    """p50, p90, p99, p99.9 and the most, by nearest rank, in µs (seed section 9.6); `count` of the events."""
    found = np.quantile(took_ns, list(SHARES.values()), method="inverted_cdf") / 1e3
    return {**dict(zip(SHARES, found.tolist(), strict=True)), "count": len(took_ns)}


def summary(runs: Runs) -> dict[str, Any]:
    """Figures of one path, µs.

    Returns:
        p50, p90, p99, p99_9 and max, each the median over the runs; `count` of all events; `range`, lowest and
        highest over the runs; `pooled`, over all events at once; `runs`; `curve`, see `curve`.
    """
    each, whole = [percentiles_us(run) for run in runs], np.concatenate(runs)
    return {
        **{name: statistics.median(one[name] for one in each) for name in SHARES},
        "count": len(whole),
        "range": {name: [min(one[name] for one in each), max(one[name] for one in each)] for name in SHARES},
        "pooled": percentiles_us(whole),
        "runs": each,
        "curve": curve(whole),
    }


def added(ours: dict[str, Any], floor: dict[str, Any], per_us: float = 1.0) -> dict[str, float] | None:
    """What ours takes beyond the floor at p50 and p99: the median over runs of the difference within a run.

    None where the floor was slower: other work was measured.
    """
    pairs = list(zip(ours["runs"], floor["runs"], strict=True))
    found = {name: statistics.median(a[name] - b[name] for a, b in pairs) / per_us for name in ("p50", "p99")}
    return found if min(found.values()) >= 0 else None


def over(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Theirs ÷ ours at p50 and p99: the median over runs where both have as many, else of the medians."""
    alike = len(theirs["runs"]) == len(ours["runs"])
    pairs = list(zip(theirs["runs"], ours["runs"], strict=True)) if alike else [(theirs, ours)]
    return {name: statistics.median(a[name] / b[name] for a, b in pairs) for name in ("p50", "p99")}


def curve(took_ns: Sequence[int] | np.ndarray) -> list[tuple[float, float]]:
    """(share of the events that took longer, µs), from all of them down to one, evenly on a log axis."""
    shares = 10.0 ** (-np.arange(_DECADES * _PER_DECADE + 1) / _PER_DECADE)
    kept = shares[shares * len(took_ns) >= 1]
    longest = np.quantile(took_ns, 1 - kept, method="inverted_cdf") / 1e3
    return list(zip(kept.tolist(), longest.tolist(), strict=True))
