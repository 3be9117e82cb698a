"""Operators that are queries together: which of them is in which, and which comes first."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from configs.topology import Topology
from models.placement.rates import inner_edges

Blocks = tuple[tuple[str, ...], ...]
"""Operators of each query, upstream first."""


def block_of(blocks: Blocks) -> dict[str, int]:
    """Return the number of each operator's block."""
    return {name: number for number, block in enumerate(blocks) for name in block}


def upstream_first(topology: Topology, blocks: Sequence[tuple[str, ...]]) -> Blocks:
    """Return blocks so that each comes after those whose records it takes."""
    place = block_of(tuple(blocks))
    needs: dict[int, set[int]] = {number: set() for number in range(len(blocks))}
    for edge in inner_edges(topology):
        if place[edge.tail] != place[edge.head]:
            needs[place[edge.head]].add(place[edge.tail])
    return tuple(blocks[number] for number in TopologicalSorter(needs).static_order())
