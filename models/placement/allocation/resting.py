"""Nodes that have had no block for a while, whose workers may be released. Md-Stream paper, hibernation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

IDLE_S = 600.0
"""Without a block, after which a node rests."""


def idle_since(before: Mapping[int, float], free: Iterable[int], now_s: float) -> dict[int, float]:
    """Return since when each node has had no block.

    A node with a block is left out, so that to put one there wakes it, and it begins anew when it is free again.

    Args:
        before: what this returned last.
        free: nodes without a block now (`Allocation.free`).
        now_s: the time, seconds.
    """
    return {node: before.get(node, now_s) for node in free}


def resting(since: Mapping[int, float], now_s: float) -> tuple[int, ...]:
    """Return the nodes that rest: those that have had no block for IDLE_S.

    Args:
        since: when each node was left, of those that have no block (`idle_since`).
        now_s: the time, seconds.
    """
    return tuple(sorted(node for node, left_s in since.items() if now_s - left_s >= IDLE_S))
