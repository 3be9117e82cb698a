"""Values of a recent window, kept in a few buckets so that a policy's memory stays small whatever the window."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Memory

BUCKETS = 12
"""A window is forgotten an eleventh at a time: what is found covers the window and up to an eleventh more."""
EMPTY = {"max": -np.inf, "sum": 0.0, "count": 0.0}


def fresh(runs: int, name: str, kinds: tuple[str, ...] = ("max", "sum", "count"), columns: int = 0) -> Memory:
    """An empty window's arrays, by names that begin with `name`.

    Each bucket is an array of its own, (runs,) or (runs, columns), because only the newest changes.

    Args:
        runs: how many.
        name: of the window.
        kinds: what is kept: "max" for `highest`, "sum" and "count" for `mean`.
        columns: how many quantities the window holds side by side; 0 for one.
    """
    shape = (runs, columns) if columns else (runs,)
    buckets = {f"{name}_{kind}_{b}": np.full(shape, EMPTY[kind]) for kind in kinds for b in range(BUCKETS)}
    return {f"{name}_period": np.full(runs, -np.inf), **buckets}


def push(memory: Memory, name: str, values: Floats, now_s: float, window_s: float) -> Memory:
    """The window after one more value per run (NaN: none) at `now_s`."""
    period = math.floor(now_s / max(window_s / (BUCKETS - 1), 1e-9))
    memory = dict(memory)
    before = memory[f"{name}_period"]
    if before[0] != period:
        _forget(memory, name, before[0], period)
        memory[f"{name}_period"] = np.full(len(before), float(period))
    known = np.isfinite(values)
    at = period % BUCKETS
    if (top := f"{name}_max_{at}") in memory:
        memory[top] = np.maximum(memory[top], np.where(known, values, -np.inf))
    if (total := f"{name}_sum_{at}") in memory:
        memory[total] = memory[total] + np.where(known, values, 0.0)
        memory[f"{name}_count_{at}"] = memory[f"{name}_count_{at}"] + known
    return memory


def highest(memory: Memory, name: str) -> Floats:
    """(runs,) the highest value of the window; -inf where it holds none."""
    buckets = _buckets(memory, name, "max")
    top: Floats = next(buckets).copy()
    for bucket in buckets:
        np.maximum(top, bucket, out=top)
    return top


def mean(memory: Memory, name: str, at_least: Integers | int = 1) -> Floats:
    """(runs,) or (runs, columns) the mean of the window; NaN where it holds fewer values than `at_least`."""
    count = _total(memory, name, "count")
    average: Floats = np.where(count >= at_least, _total(memory, name, "sum") / np.maximum(count, 1), np.nan)
    return average


def _forget(memory: Memory, name: str, last: float, period: int) -> None:
    """Empty the buckets that the window has left behind since it was last used, the one of `period` among them."""
    first = max(int(last) + 1, period - BUCKETS + 1) if last < period and math.isfinite(last) else period - BUCKETS + 1
    for passed in range(first, period + 1):
        for kind, empty in EMPTY.items():
            if (key := f"{name}_{kind}_{passed % BUCKETS}") in memory:
                memory[key] = np.full_like(memory[key], empty)


def _buckets(memory: Memory, name: str, kind: str) -> Iterator[Floats]:
    return (memory[f"{name}_{kind}_{b}"] for b in range(BUCKETS))


def _total(memory: Memory, name: str, kind: str) -> Floats:
    buckets = _buckets(memory, name, kind)
    total: Floats = next(buckets).copy()
    for bucket in buckets:
        total += bucket
    return total
