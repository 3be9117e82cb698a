"""Random graphs of operators."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from models.placement.graph import Dag, Integers


def random_graph(seed: int, size: int, share: float = 0.35) -> Dag:
    """Draw a graph: a share of the pairs of vertices is joined, in one drawn order; demands and flows are 1 to 9.

    Args:
        seed: equal ones give equal graphs.
        size: vertices.
        share: of the pairs.
    """
    random = np.random.default_rng(seed)
    names = random.permutation(size)
    edges = [
        (int(names[one]), int(names[other]), float(random.integers(1, 10)))
        for one, other in combinations(range(size), 2)
        if random.random() < share
    ]
    return Dag.build(random.integers(1, 10, size).astype(float), edges)


FAMILIES = ("layered", "random", "power-law", "planted")


class LargeGraph(NamedTuple):
    """A graph, and the blocks that it was made of, where it was."""

    graph: Dag
    planted: Integers | None


def large_graph(family: str, seed: int, vertices: int = 5_000, edges: int = 20_000, blocks: int = 8) -> LargeGraph:
    """Draw a large graph of unit demands and flows of 1 to 9; the names of its vertices say nothing.

    Args:
        family: `layered`: 100 layers, edges to one of the next three. `random`: any two vertices of a drawn order.
            `power-law`: edges come from an earlier vertex by its degree. `planted`: as many random graphs as blocks, a
            tenth of the edges between them, from a lower one to a higher one.
        seed: equal ones give equal graphs.
        vertices: of it.
        edges: that are drawn; those between the same two vertices are one.
        blocks: of a planted graph.
    """
    random = np.random.default_rng(seed)
    if family == "layered":
        layer = np.sort(random.integers(0, 100, vertices))
        one = random.integers(0, vertices, 4 * edges)
        goal = layer[one] + random.integers(1, 4, len(one))
        low, high = np.searchsorted(layer, goal), np.searchsorted(layer, goal, "right")
        able = high > low
        tail = one[able][:edges]
        head = (low + (random.random(len(one)) * (high - low)).astype(int))[able][:edges]
    elif family == "random":
        tail, head = np.sort(random.integers(0, vertices, (2, edges)), axis=0)
    elif family == "power-law":
        tail, head = _attached(random, vertices, edges)
    else:
        per = vertices // blocks
        inside = random.random(edges) < 0.9
        home = random.integers(0, blocks, edges)
        ends = np.sort(random.integers(0, per, (2, edges)), axis=0) + home * per
        apart = np.sort(np.stack([random.integers(0, vertices, edges), random.integers(0, vertices, edges)]), axis=0)
        tail, head = np.where(inside, ends, apart)
    names = random.permutation(vertices)
    flow = random.integers(1, 10, len(tail)).astype(float)
    drawn = [(int(a), int(b), f) for a, b, f in zip(names[tail], names[head], flow, strict=True) if a != b]
    planted = None
    if family == "planted":
        planted = np.empty(vertices, np.int64)
        planted[names] = np.minimum(np.arange(vertices) // (vertices // blocks), blocks - 1)
    return LargeGraph(Dag.build(np.ones(vertices), drawn), planted)


def _attached(random: np.random.Generator, vertices: int, edges: int) -> tuple[Integers, Integers]:
    """Edges whose tails are drawn by their degree so far."""
    every = edges // vertices
    ends = list(range(every))
    tails, heads = [], []
    for head in range(every, vertices):
        for tail in {ends[int(at)] for at in random.integers(0, len(ends), every)}:
            tails.append(tail)
            heads.append(head)
            ends += [tail, head]
    return np.array(tails), np.array(heads)
