"""What batches of a query tell of its records: their latency, and the work that one takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from models.placement.graph import Floats

LEAST_BATCHES, LEAST_SPREAD = 8, 0.2
"""Batches, and the standard deviation of their records as a share of the mean, from which on what a record takes is
told apart from what every batch takes."""
LEVELS = (np.arange(40) + 0.5) / 40
"""Quantiles of a batch's records that stand for all of them."""


class BatchSample(Protocol):
    """What is used of a batch's `MetricSample`."""

    @property
    def batch_rows(self) -> int | None:
        """Records, each once, however often the batch reads it."""

    @property
    def operator_rows(self) -> Mapping[str, int] | None:
        """Rows of what it reads and of what each operator makes of that, where the query counts them."""

    @property
    def wall_time(self) -> float:
        """When it ended, epoch seconds."""

    @property
    def run_s(self) -> float | None:
        """Of its tasks together, seconds."""

    @property
    def latency_p50_s(self) -> float | None:
        """Median of its records' latencies, from when they could be read."""

    @property
    def latency_p95_s(self) -> float | None:
        """95 % of them."""

    @property
    def latency_max_s(self) -> float | None:
        """The longest."""


def slope_s(batches: Sequence[BatchSample]) -> float | None:
    """Return the core-seconds of a record beyond what every batch takes: what batches take over their records.

    By least squares; None where the batches are too few, or differ too little.
    """
    known = [(one.batch_rows, one.run_s) for one in batches if one.batch_rows and one.run_s is not None]
    if len(known) < LEAST_BATCHES:
        return None
    rows, took = np.array(known, float).T
    if rows.std() < LEAST_SPREAD * rows.mean():
        return None
    slope = float(np.polyfit(rows, took, 1)[0])
    return slope if slope > 0 else None


def whole_s(batches: Sequence[BatchSample]) -> float | None:
    """Return the core-seconds of a record with its share of what every batch takes; None where nothing tells."""
    known = [(one.batch_rows or 0, one.run_s) for one in batches if one.run_s is not None]
    rows, took_s = sum(many for many, _ in known), sum(own_s for _, own_s in known)
    return took_s / rows if rows and took_s > 0 else None


def records_quantile(batches: Iterable[BatchSample], level: float) -> float | None:
    """Return a quantile of the latency of all records of some batches, seconds; None where none was measured.

    Between what a batch tells (median, 95 %, longest) its records are taken to lie evenly, and below the median as far
    as above it: nothing tells.

    Args:
        batches: with their records and latencies.
        level: in (0, 1).
    """
    values, weights = list[Floats](), list[Floats]()
    for one in batches:
        p50, p95, most = one.latency_p50_s, one.latency_p95_s, one.latency_max_s
        if one.batch_rows and p50 is not None and p95 is not None and most is not None:
            known = [max(2 * p50 - p95, 0.0), p50, p95, most]
            values.append(np.interp(LEVELS, [0.0, 0.5, 0.95, 1.0], known))
            weights.append(np.full(len(LEVELS), one.batch_rows / len(LEVELS)))
    if not values:
        return None
    all_values, all_weights = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(all_values, kind="stable")
    reached = np.cumsum(all_weights[order])
    return float(all_values[order][np.searchsorted(reached, level * reached[-1])])
