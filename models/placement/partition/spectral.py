"""Blocks by the spectrum of a graph without directions, in the order in which least flows back.

Normalised spectral clustering (Ng, Jordan and Weiss 2001).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import ArpackError, eigsh

from models.placement.graph import Dag, Integers
from models.placement.partition.coarsen import levels_of

TOLERANCE, STARTS = 1e-2, 2
MOST_RANKED = 12
"""Blocks of which every order is compared; more are put in the order of their vertices' mean level."""


def spectral_blocks(graph: Dag, blocks: int, seed: int) -> Integers:
    """Return (V,) blocks of much inner flow, ranked; edges may lead back, and blocks be of any size. Empty: none found.

    Args:
        graph: of more vertices than blocks + 1.
        blocks: how many at most.
        seed: equal ones give equal blocks.
    """
    ends = np.concatenate([graph.tail, graph.head]), np.concatenate([graph.head, graph.tail])
    both = coo_array((np.tile(graph.flow, 2), ends), shape=(graph.size, graph.size)).tocsr()
    root = 1 / np.sqrt(np.maximum(np.asarray(both.sum(axis=1)), 1e-12))
    scaled = both.multiply(root[:, None]).multiply(root[None, :]).tocsr()
    random = np.random.default_rng(seed)  # also of the vectors that go on where there are few distinct eigenvalues
    begin = random.random(graph.size)
    try:
        _, vectors = eigsh(scaled, k=blocks, which="LA", v0=begin, tol=TOLERANCE, rng=random)
    except ArpackError:  # as of a graph without flow
        return np.zeros(0, np.int64)
    rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    from sklearn.cluster import KMeans

    found = KMeans(blocks, n_init=STARTS, random_state=seed).fit_predict(rows).astype(np.int64)
    return rank_blocks(graph, found, blocks)[found]


def rank_blocks(graph: Dag, block: Integers, blocks: int) -> Integers:
    """Return the (blocks,) place of each in the order in which least flow leads to an earlier one.

    Over all sets that may come first (Held and Karp 1962).
    """
    if blocks > MOST_RANKED:
        level = levels_of(graph.outgoing, np.diff(graph.incoming.start))
        mean = np.bincount(block, level, minlength=blocks) / np.maximum(np.bincount(block, minlength=blocks), 1)
        return np.argsort(np.argsort(mean, kind="stable"), kind="stable")
    flow = np.zeros((blocks, blocks))
    np.add.at(flow, (block[graph.tail], block[graph.head]), graph.flow)
    np.fill_diagonal(flow, 0.0)
    sets = 1 << blocks
    back, last = np.full(sets, np.inf), np.zeros(sets, np.int64)
    back[0] = 0.0
    inside = (np.arange(sets)[:, None] >> np.arange(blocks)) & 1  # (sets, blocks)
    led_back = inside @ flow.T  # (sets, blocks): from a block to those of the set
    for before in range(sets):
        for own in np.flatnonzero(inside[before] == 0):
            with_own, cost = before | 1 << int(own), back[before] + led_back[before, own]
            if cost < back[with_own]:
                back[with_own], last[with_own] = cost, own
    place, left = np.zeros(blocks, np.int64), sets - 1
    for rank in range(blocks - 1, -1, -1):
        place[last[left]] = rank
        left ^= 1 << int(last[left])
    return place
