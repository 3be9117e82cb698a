"""Random graphs of operators."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from models.placement.graph import Dag


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
