"""Each move of a refinement: those of the worked graphs one by one, and what must hold of every one that is made."""

import itertools
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.partition import refine
from models.placement.partition.chance import seeded
from models.placement.partition.exact import least_cut_blocks
from models.placement.partition.kfm import partition
from models.placement.partition.order import draw_order
from models.placement.partition.refine import gain_of, stays_acyclic
from models.placement.partition.split import split_evenly
from pipelines.bench.placement.graphs import random_graph
from tests.fakes.graphs import G8, G9

UNCOMPILED = FunctionType(refine.refine_pair.py_func.__code__, vars(refine) | {"_enter": refine._enter.py_func})
"""The same refinement, which sets one block after the other where that can be seen."""


class Watched(np.ndarray):
    """Blocks that tell which vertex went where."""

    def __setitem__(self, vertex, target):
        self.moves.append((int(vertex), int(target)))
        super().__setitem__(vertex, target)


def moves_made(graph, block, low, high, most, seed=0):
    """Vertices and the blocks to which they are moved, in turn; `block` is changed."""
    watched, blocks = block.view(Watched), int(block.max()) + 1
    watched.moves = []
    compiled = block.copy()
    for run, own in ((UNCOMPILED, watched), (refine.refine_pair, compiled)):
        load, many = graph.loads(compiled, blocks), np.bincount(compiled, minlength=blocks)
        run(graph.demand, graph.outgoing, graph.incoming, own, load, many, low, high, most, 1e-9, seeded(seed, 0))
    assert (compiled == block).all()
    return watched.moves


def gains(graph, block, low, high):
    """Of each vertex that may move between two blocks."""
    found = {}
    for vertex in np.flatnonzero((block == low) | (block == high)).tolist():
        target = low + high - block[vertex]
        if stays_acyclic(graph.outgoing, graph.incoming, block, vertex, target):
            found[vertex] = gain_of(graph.outgoing, graph.incoming, block, vertex, target)
    return found


def test_moves_of_the_graph_of_eight_by_hand():
    block = split_evenly(G8.demand, np.arange(8), 2)
    assert gains(G8, block, 0, 1) == {1: -1, 2: 7, 3: 3, 4: -1, 5: 3}
    assert moves_made(G8, block, 0, 1, 89.7) == [(2, 1)] and G8.cut(block) == 12
    assert (least_cut_blocks(G8, 2, 89.7) == block).all()
    assert gains(G8, block, 0, 1) == {1: -1, 2: -7, 3: 3}  # 2 is moved once a pass
    assert gain_of(G8.outgoing, G8.incoming, block, 4, 0) == -6  # which would follow 2, and may not, like 5
    assert G8.loads(block, 2).tolist() == [55, 83] and 83 + G8.demand[3] > 89.7  # so that 3 stays
    assert moves_made(G8, block, 0, 1, 89.7) == []
    assert moves_made(G8, split_evenly(G8.demand, np.arange(8), 2), 0, 1, 72.45) == []


def test_moves_of_the_graph_of_nine_by_hand():
    """Vertices of the seed are 1 to 9, here 0 to 8."""
    block = split_evenly(G9.demand, np.arange(9), 3)
    assert (G9.cut(block), gains(G9, block, 0, 1)) == (13, {1: 1, 2: 4, 3: 5, 4: 1})
    step = block.copy()
    step[3] = 0
    assert G9.cut(step) == 8 and 2 not in gains(G9, step, 0, 1) and gains(G9, step, 0, 1)[4] == 1
    step[4] = 0
    assert G9.cut(step) == 7 and gains(G9, step, 0, 1)[5] == 3 and G9.loads(step, 3)[0] + 1 > 5.0
    assert moves_made(G9, block, 0, 1, 5.0) == [(3, 0), (4, 0)] and (block == step).all()
    assert gains(G9, block, 1, 2) == {5: 1, 6: -5} and moves_made(G9, block, 1, 2, 5.0) == []
    assert (least_cut_blocks(G9, 3, 5.0) == block).all()


def test_fewer_orders_miss_optima_that_fifty_find():
    for slack in (0.05, 0.1):
        few, many = (
            {partition(G8, 3, slack, orders=orders, seed=seed).cut for seed in range(30)} for orders in (20, 50)
        )
        assert many == {24} and max(few) > 24


def test_equation_5_as_printed_counts_every_edge_of_any_blocks():
    for block in map(np.array, itertools.product(range(2), repeat=8)):
        printed = sum(
            G8.flow[(block[G8.tail] == one) & (block[G8.head] == other)].sum() for one in (0, 1) for other in (0, 1)
        )
        assert printed == 47
        assert G8.cut(block) == printed - G8.flow[block[G8.tail] == block[G8.head]].sum()


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_of_every_move_that_is_made(seed, blocks):
    graph = random_graph(seed, 9)
    block = split_evenly(
        graph.demand, draw_order(graph.outgoing, np.diff(graph.incoming.start), seeded(seed, 0)), blocks
    )
    most = max(1.2 * np.ceil(graph.demand.sum() / blocks), graph.loads(block, blocks).max())
    for low, high in itertools.combinations(range(blocks), 2):
        now, moved = block.copy(), set()
        for vertex, target in moves_made(graph, block, low, high, most, seed):
            assert vertex not in moved and {int(now[vertex]), target} == {low, high}
            gain = gains(graph, now, low, high)[vertex]  # it passed the check
            before, larger = graph.cut(now), graph.loads(now, blocks)[[low, high]].max()
            now[vertex] = target
            moved.add(vertex)
            assert before - graph.cut(now) == pytest.approx(gain) and gain >= -1e-9
            loads = graph.loads(now, blocks)
            assert gain > 1e-9 or loads[[low, high]].max() < larger
            assert loads.max() <= most + 1e-9 and sorted(set(now.tolist())) == list(range(blocks))
            assert (now[graph.tail] <= now[graph.head]).all()
        assert (now == block).all()


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_a_partition_is_between_the_optimum_and_the_split_of_its_order(seed, blocks):
    graph = random_graph(seed, 7)
    found = partition(graph, blocks, 0.2, orders=1, seed=seed)
    order = draw_order(graph.outgoing, np.diff(graph.incoming.start), seeded(seed, 0))
    even = split_evenly(graph.demand, order, blocks)
    if not found.fits:
        return
    assert graph.cut(least_cut_blocks(graph, blocks, found.most)) <= found.cut + 1e-9
    if graph.loads(even, blocks).max() <= found.most:
        assert found.cut <= graph.cut(even) + 1e-9
