"""Latencies as figures: percentiles by nearest rank, per run and over runs, differences to a floor, a curve to draw."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import chain
from typing import Any

from pipelines.bench.fastpath.store import percentiles_us

Runs = Sequence[Sequence[int]]
"""Nanoseconds of every event, a sequence per run."""
NAMES = ("p50", "p90", "p99", "p99_9", "max")
_DECADES = 5
_PER_DECADE = 40


def summary(runs: Runs) -> dict[str, Any]:
    """Figures of one path, µs.

    Returns:
        p50, p90, p99, p99_9 and max, each the median over the runs; `count` of all events; `range`, lowest and
        highest over the runs; `pooled`, over all events at once; `runs`; `curve`, see `curve`.
    """
    each = [percentiles_us(run) for run in runs]
    whole = sorted(chain.from_iterable(runs))
    return {
        **{name: statistics.median(one[name] for one in each) for name in NAMES},
        "count": len(whole),
        "range": {name: [min(one[name] for one in each), max(one[name] for one in each)] for name in NAMES},
        "pooled": percentiles_us(whole),
        "runs": each,
        "curve": curve(whole),
    }


def added(ours: dict[str, Any], floor: dict[str, Any], per_us: float = 1.0) -> dict[str, float]:
    """What ours takes beyond the floor at p50 and p99: the median over runs of the difference within a run."""
    pairs = list(zip(ours["runs"], floor["runs"], strict=True))
    return {name: statistics.median(a[name] - b[name] for a, b in pairs) / per_us for name in ("p50", "p99")}


def over(theirs: dict[str, Any], ours: dict[str, Any], names: Sequence[str] = ("p50", "p99")) -> dict[str, float]:
    """Theirs ÷ ours: the median over runs where both have as many, else of the medians."""
    if len(theirs["runs"]) != len(ours["runs"]):
        return {name: theirs[name] / ours[name] for name in names}
    pairs = list(zip(theirs["runs"], ours["runs"], strict=True))
    return {name: statistics.median(a[name] / b[name] for a, b in pairs) for name in names}


def curve(ranked: Sequence[int]) -> list[tuple[float, float]]:
    """(share of the events that took longer, µs), from half of them down to one, evenly on a log axis.

    Args:
        ranked: nanoseconds, rising.
    """
    count = len(ranked)
    shares = [10 ** (-n / _PER_DECADE) for n in range(_DECADES * _PER_DECADE + 1)]
    kept = [share for share in shares if share * count >= 1]
    return [(share, ranked[max(math.ceil((1 - share) * count) - 1, 0)] / 1e3) for share in kept]
