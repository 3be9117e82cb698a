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


def percentiles_in_us(took_ns: Sequence[int] | np.ndarray) -> dict[str, float]:
    """Compute percentiles of latencies by nearest rank.

    Args:
        took_ns: (N,) nanoseconds, N at least 1.

    Returns:
        `p50`, `p90`, `p99`, `p99_9` and `max` in microseconds, and `count`, which is N.
    """
    percentiles = np.quantile(took_ns, list(SHARES.values()), method="inverted_cdf") / 1e3
    return {**dict(zip(SHARES, percentiles.tolist(), strict=True)), "count": len(took_ns)}


def summarise_runs(runs: Runs) -> dict[str, Any]:
    """Summarise the latencies of one path over its runs, in microseconds.

    Args:
        runs: nanoseconds of every event, a sequence per run, none of them empty.

    Returns:
        `p50`, `p90`, `p99`, `p99_9` and `max`, each the median over the runs; `count` of all events; `range`, by
        percentile [lowest, highest] over the runs; `pooled`, `percentiles_in_us` over all events at once; `runs`, a
        list of the same per run; `curve`, see `latency_tail`.

    Raises:
        ValueError: there is no run.
    """
    each, all_events = [percentiles_in_us(run) for run in runs], np.concatenate(runs)
    return {
        **{name: statistics.median(one[name] for one in each) for name in SHARES},
        "count": len(all_events),
        "range": {name: [min(one[name] for one in each), max(one[name] for one in each)] for name in SHARES},
        "pooled": percentiles_in_us(all_events),
        "runs": each,
        "curve": latency_tail(all_events),
    }


def subtract_floor(ours: dict[str, Any], floor: dict[str, Any], per_us: float = 1.0) -> dict[str, float] | None:
    """Subtract the latencies of a floor, such as a bare echo, from ours, run by run.

    Args:
        ours: as from `summarise_runs`.
        floor: likewise, of as many runs, measured in turn with ours.
        per_us: microseconds in the unit of the result: 1 for µs, 1000 for ms.

    Returns:
        `p50` and `p99`: the median over runs of the difference within a run. None where either is negative: then floor
        and path did not do the same work.

    Raises:
        ValueError: the numbers of runs differ.
    """
    pairs = list(zip(ours["runs"], floor["runs"], strict=True))
    differences = {name: statistics.median(a[name] - b[name] for a, b in pairs) / per_us for name in ("p50", "p99")}
    return differences if min(differences.values()) >= 0 else None


def divide_latencies(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Divide a peer's latencies by ours, at `p50` and `p99`.

    Args:
        theirs: as from `summarise_runs`.
        ours: likewise.

    Returns:
        By percentile the median of the ratios within a run; with different numbers of runs the ratio of the medians.
    """
    paired = len(theirs["runs"]) == len(ours["runs"])
    pairs = list(zip(theirs["runs"], ours["runs"], strict=True)) if paired else [(theirs, ours)]
    return {name: statistics.median(a[name] / b[name] for a, b in pairs) for name in ("p50", "p99")}


def latency_tail(took_ns: Sequence[int] | np.ndarray) -> list[tuple[float, float]]:
    """Compute the tail of the latency distribution, to be drawn on logarithmic axes.

    Args:
        took_ns: (N,) nanoseconds, N at least 1.

    Returns:
        (share of the events that took longer, microseconds) for shares falling from 1 to 1/N, 40 per factor of ten and
        at most down to 1e-5.
    """
    shares = 10.0 ** (-np.arange(_DECADES * _PER_DECADE + 1) / _PER_DECADE)
    shares_kept = shares[shares * len(took_ns) >= 1]
    longest = np.quantile(took_ns, 1 - shares_kept, method="inverted_cdf") / 1e3
    return list(zip(shares_kept.tolist(), longest.tolist(), strict=True))
