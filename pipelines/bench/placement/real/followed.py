"""What results tell of the records that were sent: how late each counted, and how many a second did."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

APART_S, LEAST_BATCHES = 0.5, 3
"""Seconds without a result that part those of one batch from those of the next, and batches that tell a rate."""


class CountResult(NamedTuple):
    """A result: at `at_s` (epoch seconds) `n` records had counted at its key."""

    at_s: float
    key: str
    n: int


def record_latencies(
    sent: Iterable[tuple[float, Sequence[str]]], results: Iterable[CountResult], since_s: float, until_s: float
) -> list[float]:
    """Return how long each record took to each result at which it counts, seconds; infinite where it never did.

    The k-th record of a key has counted with the first result that tells k of them: records of a key are taken to count
    in their order.

    Args:
        sent: when each record was made (epoch seconds, rising), and the keys at which it counts.
        results: in any order.
        since_s: records made before do not count.
        until_s: nor do those that were made from then on.
    """
    reached = _reached(results)
    number: dict[str, int] = {}
    found = []
    for at_s, keys in sent:
        for key in keys:
            number[key] = k = number.get(key, 0) + 1
            if since_s <= at_s < until_s:
                counts, times = reached.get(key, ([], []))
                place = bisect_left(counts, k)
                found.append(times[place] - at_s if place < len(times) else math.inf)
    return found


def counted_rate(results: Iterable[CountResult], since_s: float, until_s: float) -> float | None:
    """Return the records/s that came to count between two moments, by a straight line; None with too few batches.

    A record counts once for each key.

    Args:
        results: in any order.
        since_s: epoch seconds.
        until_s: likewise.
    """
    known: dict[str, int] = {}
    at, total, many = list[float](), list[int](), 0
    for one in sorted(results):
        many += max(one.n - known.get(one.key, 0), 0)
        known[one.key] = max(one.n, known.get(one.key, 0))
        if since_s <= one.at_s <= until_s:
            at.append(one.at_s)
            total.append(many)
    if sum(later - before > APART_S for before, later in pairwise(at)) < LEAST_BATCHES - 1:
        return None
    return float(np.polyfit(np.array(at) - at[0], total, 1)[0])


def _reached(results: Iterable[CountResult]) -> dict[str, tuple[list[int], list[float]]]:
    """Of each key rising numbers of records, and when each was told first."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for one in sorted(results):
        counts, times = found.setdefault(one.key, ([], []))
        if not counts or one.n > counts[-1]:
            counts.append(one.n)
            times.append(one.at_s)
    return found
