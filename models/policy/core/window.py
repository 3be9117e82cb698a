"""Sliding windows of fixed memory: maximum and mean of recent values, kept in a few buckets."""

from __future__ import annotations

import math

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory

BUCKETS = 12
"""Buckets per window; values fall out one bucket at a time, so results cover the window and up to 1/11 more."""
EMPTY = {"max": -np.inf, "sum": 0.0, "count": 0.0}


def fresh(runs: int, name: str, kinds: tuple[str, ...] = ("max", "sum", "count"), columns: int = 0) -> Memory:
    """Create an empty sliding window: arrays under `<name>_<kind>`, and `<name>_period` for the newest bucket.

    Args:
        runs: how many.
        name: of the window.
        kinds: what is kept: "max" for `highest`, "sum" and "count" for `mean`.
        columns: how many quantities the window holds side by side; 0 for one.

    Returns:
        Arrays of shape (runs, BUCKETS) or (runs, BUCKETS, columns), and (runs,) for the period.
    """
    shape = (BUCKETS, runs, columns) if columns else (BUCKETS, runs)  # buckets first: each is contiguous in memory
    empty = {f"{name}_{kind}": np.full(shape, EMPTY[kind]).swapaxes(0, 1) for kind in kinds}
    return {f"{name}_period": np.full(runs, -np.inf), **empty}


def push_values(memory: Memory, name: str, values: Floats, now_s: float, window_s: float) -> Memory:
    """Add one value per run to a sliding window; older ones fall out at most an eleventh of `window_s` late.

    Args:
        memory: that holds the window; not changed.
        name: of the window.
        values: (runs,) or (runs, columns); NaN or infinite: nothing is added.
        now_s: seconds, the same for all runs and not before those of the last call.
        window_s: length of the window in seconds, the same at every call.

    Returns:
        A copy of the memory with the window's arrays `<name>_period`, `_max`, `_sum`, `_count` replaced as far as it
        has them, (runs,) and (runs, 12[, columns]); other entries stay.

    Raises:
        KeyError: the memory holds no window of that name (`fresh` makes one).
        ValueError: a time that is NaN, or values of another shape than the window.
    """
    period, known = math.floor(now_s / max(window_s / (BUCKETS - 1), 1e-9)), np.isfinite(values)
    last, at = float(memory[f"{name}_period"][0]), period % BUCKETS
    first = max(int(last) + 1, period - BUCKETS + 1) if -math.inf < last < period else period - BUCKETS + 1
    passed = [] if last == period else [gone % BUCKETS for gone in range(first, period + 1)]
    after = {**memory, f"{name}_period": np.full(len(values), float(period))}
    added = {"max": np.where(known, values, -np.inf), "sum": np.where(known, values, 0.0), "count": known.astype(float)}
    for kind, one in added.items():
        if (key := f"{name}_{kind}") in memory:
            after[key] = buckets = memory[key].copy("K")
            buckets[:, passed] = EMPTY[kind]
            buckets[:, at] = np.maximum(buckets[:, at], one) if kind == "max" else buckets[:, at] + one
    return after


def highest(memory: Memory, name: str) -> Floats:
    """Return (runs,) the highest value in a window; -inf where it holds none.

    Raises:
        KeyError: the memory holds no window of that name, or one without "max".
    """
    top: Floats = memory[f"{name}_max"].max(axis=1)
    return top


def mean(memory: Memory, name: str, at_least: Integers | int = 1) -> Floats:
    """Return the mean over a window, (runs,) or (runs, columns); NaN where it holds fewer than `at_least` values.

    Raises:
        KeyError: the memory holds no window of that name, or one without "sum" and "count".
    """
    count, total = memory[f"{name}_count"].sum(axis=1), memory[f"{name}_sum"].sum(axis=1)
    average: Floats = np.where(count >= at_least, total / np.maximum(count, 1), np.nan)
    return average
