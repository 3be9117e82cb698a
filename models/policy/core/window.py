"""Sliding windows of fixed memory: maximum and mean of recent values, kept in a few buckets."""

from __future__ import annotations

import math

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory

BUCKETS = 12
"""Buckets per window; values fall out one bucket at a time, so results cover the window and up to 1/11 more."""
EMPTY = {"max": -np.inf, "sum": 0.0, "count": 0.0}
_BUCKET = np.arange(BUCKETS)


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


def push_values(memory: Memory, name: str, values: Floats, now_s: float, window_s: Floats | float) -> Memory:
    """Add one value per run to a sliding window; older ones fall out at most an eleventh of `window_s` late.

    Args:
        memory: that holds the window; not changed.
        name: of the window.
        values: (runs,) or (runs, columns); NaN or infinite: nothing is added.
        now_s: seconds, the same for all runs and not before those of the last call.
        window_s: length of the window in seconds, a number or one per run, the same at every call.

    Returns:
        A copy of the memory with the window's arrays `<name>_period`, `_max`, `_sum`, `_count` replaced as far as it
        has them, (runs,) and (runs, 12[, columns]); other entries stay.

    Raises:
        KeyError: the memory holds no window of that name (`fresh` makes one).
        ValueError: a time that is NaN, or values of another shape than the window.
    """
    if math.isnan(now_s):
        raise ValueError("a value at a time that is NaN")
    last = memory[f"{name}_period"]
    period = np.floor(now_s / np.maximum(np.asarray(window_s) / (BUCKETS - 1), 1e-9)) + np.zeros(len(last))
    at, rows, known = (period % BUCKETS).astype(np.int64), np.arange(len(last)), np.isfinite(values)
    after, gone = {**memory, f"{name}_period": period}, None
    if (moved := period != last).any():
        passed = np.where(np.isfinite(last) & (last < period), period - last, np.where(moved, BUCKETS, 0))
        gone = (at[:, None] - _BUCKET) % BUCKETS < passed[:, None]  # the newest buckets, with what they held
    for kind, empty in EMPTY.items():
        if (key := f"{name}_{kind}") in memory:
            buckets = memory[key].copy("K")
            if gone is not None:
                buckets[gone] = empty
            if kind == "max":
                buckets[rows, at] = np.maximum(buckets[rows, at], np.where(known, values, empty))
            else:
                buckets[rows, at] += np.where(known, values, empty) if kind == "sum" else known
            after[key] = buckets
    return after


def begin_anew(memory: Memory, name: str, now_s: float, window_s: Floats | float) -> Memory:
    """Return the memory with a window of another length, which holds the highest of what it held as if of now.

    `push_values` takes a value of another length's window for one of long ago, and forgets it.

    Args:
        memory: that holds the window, of "max" alone; not changed.
        name: of the window.
        now_s: seconds, as in `push_values`.
        window_s: its length from now on, likewise.

    Raises:
        KeyError, ValueError: as `push_values`.
    """
    top = highest(memory, name)
    return push_values({**memory, **fresh(len(top), name, ("max",))}, name, top, now_s, window_s)


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
