"""Blocks of a graph that is made smaller, cut there, and refined on every way back."""

from __future__ import annotations

from models.placement.graph import Dag, Integers
from models.placement.partition.coarsen import Coarser, join_pairs
from models.placement.partition.kfm import partition, refine_blocks

SMALL = 160
"""Vertices at which a graph is cut."""
LEAST_GAIN = 0.03
"""Share by which one of two turns of joining has to make a graph smaller."""
HEAVIEST = 0.25
"""Most demand of a joined vertex, as a share of a block's."""


def split_by_coarsening(graph: Dag, blocks: int, most: float, seed: int) -> Integers:
    """Return (V,) blocks whose dependencies have one direction.

    Args:
        graph: with the demand of operators and the flow between them.
        blocks: how many, at least 1 and at most the vertices.
        most: demand of a block.
        seed: equal ones give equal blocks.
    """
    levels, last, turn, waited = list[Coarser](), graph, 0, 0
    while last.size > SMALL * max(blocks / 4, 1) and waited < 2:
        one = join_pairs(last, HEAVIEST * most, odd=bool(turn % 2), seed=seed + turn)
        waited = waited + 1 if one.graph.size > (1 - LEAST_GAIN) * last.size else 0
        if one.graph.size < blocks:
            break
        levels.append(one)
        last, turn = one.graph, turn + 1
    slack = most * blocks / float(last.demand.sum()) - 1  # that of `most`, which is rounded up once more at the worst
    block = partition(last, blocks, slack, "dp", seed=seed, most=most).block
    for number in range(len(levels) - 1, -1, -1):
        block = block[levels[number].of].copy()
        refine_blocks(levels[number - 1].graph if number else graph, block, blocks, most, seed)
    return block
