"""Rows at times to a load at steps: events counted, values averaged, what is missing left out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Times = NDArray[np.int64]


class Steps(NamedTuple):
    """Known steps of a load: (N,) epoch seconds at which each begins, rising, and (N,) finite values."""

    times: Times
    values: Floats


def count_events(times: Times, step_s: int) -> Steps:
    """Count events per step, from the first event's step on: 0 where there is none, without the last, cut-off step.

    Steps begin at multiples of `step_s` since the epoch.

    Args:
        times: (N,) epoch seconds of events, in any order.
        step_s: seconds per step.
    """
    if not len(times):
        return Steps(np.empty(0, np.int64), np.empty(0))
    steps = times // step_s
    first = int(steps.min())
    counts = np.bincount(steps - first)[:-1]
    return Steps((first + np.arange(len(counts))) * step_s, counts.astype(np.float64))


def keep_known(times: Times, values: Floats) -> Steps:
    """Leave out rows without a value (NaN) and, of rows with one time, all but the first; sort by time."""
    known = np.isfinite(values)
    kept, first = np.unique(times[known], return_index=True)
    return Steps(kept, values[known][first])


def average(known: Steps, own_step_s: int, step_s: int, least_known: float) -> Steps:
    """Average steps to longer ones, which begin at multiples of `step_s` since the epoch.

    Sums are exact (`math.fsum`), so that a file has the same bytes wherever it is made.

    Args:
        known: steps of the data.
        own_step_s: seconds per step of the data.
        step_s: seconds per longer step, a multiple of `own_step_s`.
        least_known: share of a longer step's own steps that must be known; one at least must be.
    """
    longer, begins = np.unique(known.times // step_s, return_index=True)
    parts = [part for part in np.split(known.values, begins[1:]) if len(part)]
    enough = np.array([len(part) >= least_known * step_s / own_step_s for part in parts], dtype=bool)
    means = np.array([math.fsum(part) / len(part) for part in parts])
    return Steps(longer[enough] * step_s, means[enough])


def take_newest(steps: Steps, count: int | None) -> Steps:
    """Take the newest `count` known steps; None: all."""
    return steps if count is None else Steps(steps.times[-count:], steps.values[-count:])
