"""Worked graphs, random ones, and the cheapest blocks of small ones by trying all."""

import itertools

import numpy as np

from models.placement.graph import Dag

G8 = Dag.build([10, 20, 15, 25, 18, 22, 12, 16], [
    (0, 1, 4), (0, 3, 6), (1, 4, 3), (2, 4, 5), (2, 5, 2), (3, 5, 7), (3, 6, 2), (4, 6, 5), (4, 7, 4), (5, 7, 6),
    (6, 7, 3),
])  # fmt: skip
G9 = Dag.build([1] * 9, [(tail - 1, head - 1, flow) for tail, head, flow in (
    (1, 2, 3), (1, 3, 1), (2, 4, 4), (3, 4, 2), (3, 5, 3), (4, 6, 1), (5, 6, 2), (4, 7, 2), (6, 8, 1), (7, 8, 3),
    (7, 9, 2), (8, 9, 4), (5, 9, 1),
)])  # fmt: skip


def cheapest(graph, blocks, most):
    """The least cut of all blocks whose dependencies have one direction, and all blocks that have it."""
    best, found = np.inf, []
    for block in map(np.array, itertools.product(range(blocks), repeat=graph.size)):
        if len(set(block.tolist())) < blocks or (block[graph.tail] > block[graph.head]).any():
            continue
        if graph.loads(block, blocks).max() > most + 1e-9:
            continue
        cut = graph.cut(block)
        if cut < best - 1e-9:
            best, found = cut, []
        if cut <= best + 1e-9:
            found.append(block)
    return best, found
