"""Values of a recent window, kept in a few buckets so that a policy's memory stays small whatever the window."""

from __future__ import annotations

import numpy as np

from models.policy.view import Floats, Memory

BUCKETS = 12
"""A window is forgotten a twelfth at a time: what is found covers the window and up to a twelfth more."""


def fresh(runs: int, name: str) -> Memory:
    """An empty window's arrays, by names that begin with `name`."""
    return {
        f"{name}_max": np.full((runs, BUCKETS), -np.inf),
        f"{name}_sum": np.zeros((runs, BUCKETS)),
        f"{name}_count": np.zeros((runs, BUCKETS)),
        f"{name}_at": np.full((runs, BUCKETS), -np.inf),
    }


def push(memory: Memory, name: str, values: Floats, now_s: float, window_s: float) -> Memory:
    """The window after one more value per run (NaN: none) at `now_s`.

    A bucket is one twelfth of the window; what it held when it was last used is over by then.
    """
    width = max(window_s / BUCKETS, 1e-9)
    period = np.floor(now_s / width)
    at = int(period % BUCKETS)
    highest, total = memory[f"{name}_max"].copy(), memory[f"{name}_sum"].copy()
    count, when = memory[f"{name}_count"].copy(), memory[f"{name}_at"].copy()
    old = when[:, at] != period
    known = np.isfinite(values)
    highest[:, at] = np.fmax(np.where(old, -np.inf, highest[:, at]), np.where(known, values, -np.inf))
    total[:, at] = np.where(old, 0.0, total[:, at]) + np.where(known, values, 0.0)
    count[:, at] = np.where(old, 0.0, count[:, at]) + known
    when[:, at] = period
    live = when > period - BUCKETS - 0.5
    return {
        **memory,
        f"{name}_max": np.where(live, highest, -np.inf),
        f"{name}_sum": np.where(live, total, 0.0),
        f"{name}_count": np.where(live, count, 0.0),
        f"{name}_at": when,
    }


def highest(memory: Memory, name: str) -> Floats:
    """(runs,) the highest value of the window; -inf where it holds none."""
    top: Floats = memory[f"{name}_max"].max(axis=1)
    return top


def mean(memory: Memory, name: str) -> Floats:
    """(runs,) the mean of the window; NaN where it holds none."""
    count = memory[f"{name}_count"].sum(axis=1)
    average: Floats = np.where(count > 0, memory[f"{name}_sum"].sum(axis=1) / np.maximum(count, 1), np.nan)
    return average
