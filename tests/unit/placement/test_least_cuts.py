"""Optima of small graphs: the worked ones with all blocks that have them, and what must hold of every graph."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.graph import Dag
from models.placement.partition.chance import seeded
from models.placement.partition.exact import least_cut_blocks
from models.placement.partition.kfm import partition
from models.placement.partition.order import draw_order
from models.placement.partition.refine import refine_pair
from models.placement.partition.split import split_evenly
from pipelines.bench.placement.graphs import random_graph
from tests.fakes.graphs import G8, G9, cheapest


def told(block):
    return "|".join("".join(str(v) for v in np.flatnonzero(block == number)) for number in range(block.max() + 1))


@pytest.mark.parametrize(("blocks", "slack", "most", "cut", "optima"), [
    (2, 0.05, 72.45, 17, {"0235|1467"}), (2, 0.1, 75.9, 17, {"0235|1467", "0124|3567"}), (2, 0.2, 82.8, 17, None),
    (2, 0.3, 89.7, 12, {"013|24567"}), (2, 0.5, 103.5, 12, {"013|24567"}),
    (3, 0.05, 48.3, 24, {"012|35|467"}), (3, 0.1, 50.6, 24, {"012|35|467"}), (3, 0.2, 55.2, 21, {"013|246|57"}),
    (3, 0.3, 59.8, 21, {"013|246|57"}), (3, 0.5, 69.0, 19, {"013|2|4567", "2|013|4567", "2|035|1467"}),
])  # fmt: skip
def test_all_optima_of_the_graph_of_eight(blocks, slack, most, cut, optima):
    best, found = cheapest(G8, blocks, most)
    assert best == cut and (optima is None or {told(one) for one in found} == optima)
    for seed in range(5):
        made = partition(G8, blocks, slack, seed=seed)
        assert made.most == pytest.approx(most) and made.cut == cut


def test_figures_of_the_graph_of_eight():
    assert (G8.demand.sum(), G8.flow.sum(), len(G8.flow)) == (138, 47, 11)
    (block,) = cheapest(G8, 2, 89.7)[1]
    assert G8.loads(block, 2).tolist() == [55, 83]

    def orders(left):
        free = [v for v in left if not {*G8.tail[G8.head == v].tolist()} & left]
        return sum(orders(left - {v}) for v in free) if left else 1

    assert orders(frozenset(range(8))) == 33
    # With cycles between blocks 13 would do, where 17 is the least without.
    both_ways = [
        (G8.cut(block), told(block)) for block in map(np.array, itertools.product((0, 1), repeat=8))
        if 0 < block.sum() < 8 and block[0] == 0 and G8.loads(block, 2).max() <= 82.8
    ]  # fmt: skip
    assert min(both_ways) == (13, "0135|2467") and cheapest(G8, 2, 82.8)[0] == 17
    # With i = j equation 5 counts every edge, whatever the blocks.
    for block in (np.zeros(8, np.int64), np.arange(8)):
        inside = G8.flow[block[G8.tail] == block[G8.head]].sum()
        assert G8.cut(block) + inside == 47


def test_the_only_optimum_of_the_graph_of_nine():
    best, found = cheapest(G9, 3, 5.0)
    assert best == 7 and [told(one) for one in found] == ["01234|5|678"]


@given(st.integers(0, 10_000), st.integers(2, 3))
def test_of_every_optimum(seed, blocks):
    graph, random = random_graph(seed, 6), np.random.default_rng(seed)
    most = 1.2 * np.ceil(graph.demand.sum() / blocks)
    found = least_cut_blocks(graph, blocks, most)
    wider = least_cut_blocks(graph, blocks, 1.5 * most)
    if found is None:
        return
    assert wider is not None and graph.cut(wider) <= graph.cut(found) + 1e-9
    place = random.permutation(graph.size)  # vertices have other numbers
    demand = np.empty(graph.size)
    demand[place] = graph.demand
    renamed = Dag.build(demand, zip(place[graph.tail].tolist(), place[graph.head].tolist(), graph.flow, strict=True))
    again = least_cut_blocks(renamed, blocks, most)
    assert renamed.cut(again) == pytest.approx(graph.cut(found))
    for one in range(blocks - 1):  # two neighbours in their order become one block
        assert graph.cut(np.where(found > one, found - 1, found)) <= graph.cut(found) + 1e-9


@given(st.integers(0, 10_000), st.integers(2, 3))
def test_refining_never_raises_the_cut_and_ends_between_the_optimum_and_the_split(seed, blocks):
    graph = random_graph(seed, 7)
    order = draw_order(graph.outgoing, np.diff(graph.incoming.start), seeded(seed, 0))
    block = split_evenly(graph.demand, order, blocks)
    load, many = graph.loads(block, blocks), np.bincount(block, minlength=blocks)
    most, cuts = max(1.2 * np.ceil(graph.demand.sum() / blocks), load.max()), [graph.cut(block)]
    for low, high in itertools.combinations(range(blocks), 2):
        refine_pair(
            graph.demand, graph.outgoing, graph.incoming, block, load, many, low, high, most, 0.0, seeded(seed, 1)
        )
        cuts.append(graph.cut(block))
        assert (block[graph.tail] <= block[graph.head]).all() and load.max() <= most + 1e-9
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(cuts))
    assert graph.cut(least_cut_blocks(graph, blocks, most)) <= cuts[-1] + 1e-9
