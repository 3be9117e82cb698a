"""Blocks by METIS, which knows no directions (Karypis and Kumar 1998), and what is left of them without cycles."""

from __future__ import annotations

import numpy as np
import pymetis

from models.placement.graph import Dag, Integers
from models.placement.partition.large import finish_blocks
from models.placement.partition.spectral import rank_blocks


def metis_blocks(graph: Dag, blocks: int, slack: float) -> Integers:
    """Return (V,) blocks of METIS, ranked so that least leads back; a block has at most (1 + slack) times the mean."""
    one, other = np.concatenate([graph.tail, graph.head]), np.concatenate([graph.head, graph.tail])
    order = np.lexsort((other, one))
    start = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=graph.size))])
    near = pymetis.CSRAdjacency(start.astype(np.int32), other[order].astype(np.int32))
    flow, demand = np.tile(graph.flow, 2)[order], np.rint(graph.demand).astype(np.int32)
    options = pymetis.Options(ufactor=round(1000 * slack), seed=0)
    found = pymetis.part_graph(blocks, near, vweights=demand, eweights=np.rint(flow).astype(np.int32), options=options)
    part = np.asarray(found[1], np.int64)
    return rank_blocks(graph, part, blocks)[part]


def without_cycles(graph: Dag, block: Integers, blocks: int, most: float) -> Integers:
    """Return those of METIS mended: what leads back is pushed onward or drawn back, then refined as ours are."""
    return min(finish_blocks(graph, block, blocks, most, 0), key=graph.cut)
