"""The rate at which records arrive now: of as long a time as its newest seconds do not contradict; pure.

A mean of a few seconds is mostly noise where few records come: at a constant load it called for executors that were let
go a lead time later, up to 160 times an hour. One of a minute is late when the load changes. So the longest is taken
that agrees with all shorter ones up to chance, as Lepski chooses a bandwidth (Theory Probab. Appl. 35(3), 1991).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from models.policy.core.capacity import Floats
from models.policy.received.outlook import SMOOTH_S

SPANS = (1, 4, 8, 16)
"""Times that are looked back on, rising, in units of the shortest."""
GAP_S = 5.0
"""Seconds without metrics after which those of before do not count."""
CHANCE = 2.5
"""Standard deviations by which the mean of a shorter time may differ from that of a longer one, as of Poisson arrivals.
In the twin, at 25 records/s an executor and 30 s of lead time, executors cost 8 % less without a forecast than by the
shortest mean alone, for as many late seconds, and 1 % less with one; their number changes a quarter less often.
"""
_LONGER, _SHORTER = np.tril_indices(len(SPANS), -1)
"""Every pair of a time and a shorter one, by the longer."""
_UNTIL = np.cumsum(np.arange(1, len(SPANS))) - 1
"""The last pair of each time but the shortest."""


def steady_rate(means: Sequence[Floats] | Floats, shortest_s: float) -> Floats:
    """Return the mean of the longest time with which those of all shorter ones agree.

    Args:
        means: records/s of the newest SPANS × `shortest_s` seconds, in that order; arrays of one shape.
        shortest_s: seconds of the shortest time, above 0.

    Returns:
        An array of that shape; 0 where nothing came in the shortest time, NaN where that is.
    """
    each = np.array(means, float)
    long, short = each[_LONGER], each[_SHORTER]
    seconds = (shortest_s * np.array(SPANS, float)[_SHORTER]).reshape(-1, *[1] * (each.ndim - 1))
    variance = np.maximum(long, 1 / seconds) / seconds  # one record, however few come
    near = np.abs(long - short) <= CHANCE * np.sqrt(variance)
    agree = np.logical_and.accumulate(near, axis=0)[_UNTIL]
    found: Floats = each[0]
    for mean, agreed in zip(each[1:], agree, strict=True):
        found = np.where(agreed, mean, found)
    return np.where(each[0] == 0, 0.0, found)


def add_seconds(newest: tuple[float, ...], rps: float, span_s: float, silent_s: float) -> tuple[float, ...]:
    """Return the rates of the newest whole seconds, oldest first, after an interval of metrics.

    After a gap they begin anew: what came before it tells nothing of now.

    Args:
        newest: before it.
        rps: of the interval.
        span_s: its length, wall seconds.
        silent_s: for how long before it nothing was told.
    """
    more = (rps,) * max(round(min(span_s, SPANS[-1] * SMOOTH_S)), 1)  # a record may tell of a year
    return ((*newest, *more) if silent_s <= GAP_S else more)[-SPANS[-1] * int(SMOOTH_S) :]


def rate_of_seconds(newest: Sequence[float]) -> float:
    """Return the rate now, of the newest whole seconds' records/s, oldest first, at least one.

    Of fewer than a time has seconds its mean is that of all. It is what `steady_rate` comes to for one job, to the last
    bit, in plain numbers: each decision asks for it, and of single numbers numpy makes five times as much work.
    """
    seconds = np.array(newest[-SPANS[-1] * int(SMOOTH_S) :])
    means: list[float] = []
    for span in SPANS:
        some = seconds[-span * int(SMOOTH_S) :]
        mean = float(np.add.reduce(some)) / len(some)
        if not all(_agree(mean, *shorter) for shorter in zip(means, SPANS, strict=False)):
            break
        means.append(mean)
    return 0.0 if means[0] == 0 else means[-1]


def _agree(mean: float, shorter: float, span: int) -> bool:
    seconds = span * SMOOTH_S
    return abs(mean - shorter) <= CHANCE * math.sqrt(max(mean, 1 / seconds) / seconds)
