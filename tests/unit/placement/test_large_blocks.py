"""Blocks of large graphs: each step by hand or against all possibilities, and what must hold of every result."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.graph import Dag, GraphError
from models.placement.partition.coarsen import join_pairs, levels_of
from models.placement.partition.kfm import partition
from models.placement.partition.large import finish_blocks, partition_large
from models.placement.partition.multilevel import split_by_coarsening
from models.placement.partition.relax import draw_back, push_onward, relax
from models.placement.partition.smooth import order_by, smooth_order, smooth_values
from models.placement.partition.spectral import rank_blocks, spectral_blocks
from pipelines.bench.placement.graphs import FAMILIES, large_graph, random_graph


def leads_onward(graph, block):
    return bool((block[graph.tail] <= block[graph.head]).all())


def test_levels_and_pairs_by_hand():
    chain = Dag.build([1] * 4, [(0, 1, 5), (1, 2, 9), (2, 3, 5), (0, 3, 1)])
    assert levels_of(chain.outgoing, np.diff(chain.incoming.start)).tolist() == [0, 1, 2, 3]
    even = join_pairs(chain, most=2, odd=False, seed=0)
    assert (
        even.of.tolist() == [0, 0, 1, 1] and even.graph.flow.tolist() == [10] and even.graph.demand.tolist() == [2, 2]
    )
    odd = join_pairs(chain, most=2, odd=True, seed=0)
    assert odd.of.tolist() == [0, 1, 1, 2] and odd.graph.flow.tolist() == [5, 1, 5]
    assert join_pairs(chain, most=1.5, odd=False, seed=0).graph.size == 4


def test_pairs_whose_edges_would_make_a_circle_are_not_joined():
    crossed = Dag.build([1] * 4, [(0, 2, 9), (1, 3, 9), (0, 3, 1), (1, 2, 1)])
    found = join_pairs(crossed, most=2, odd=False, seed=0)
    assert found.graph.size == 3


@given(st.integers(0, 2_000), st.booleans())
def test_joining_keeps_demand_and_flow_and_makes_no_cycle(seed, odd):
    graph = random_graph(seed, 14, 0.3)
    found = join_pairs(graph, most=12, odd=odd, seed=seed)
    again = Dag.build(
        found.graph.demand,
        zip(found.graph.tail.tolist(), found.graph.head.tolist(), found.graph.flow.tolist(), strict=True),
    )
    assert again.flow.tolist() == found.graph.flow.tolist()
    assert found.graph.demand.sum() == graph.demand.sum()
    inside = graph.flow[found.of[graph.tail] == found.of[graph.head]].sum()
    assert found.graph.flow.sum() + inside == pytest.approx(graph.flow.sum())


def test_values_are_drawn_to_their_neighbours_by_hand():
    pair = Dag.build([1, 1, 1], [(0, 1, 3), (1, 2, 1)])
    found = smooth_values(pair.outgoing, pair.incoming, np.array([0.0, 4.0, 8.0]), 1)
    assert found.tolist() == [2, 3, 6]


@given(st.integers(0, 1_000))
def test_orders_are_topological(seed):
    graph = random_graph(seed, 12)
    for order in (smooth_order(graph, seed), order_by(graph.outgoing, np.diff(graph.incoming.start), -np.arange(12.0))):
        place = np.empty(12)
        place[order] = np.arange(12)
        assert (place[graph.tail] < place[graph.head]).all() and sorted(order.tolist()) == list(range(12))


@given(st.integers(0, 300))
def test_blocks_are_ranked_so_that_least_leads_back(seed):
    graph, random = random_graph(seed, 12), np.random.default_rng(seed)
    block = random.permutation(np.arange(12) % 4)
    place = rank_blocks(graph, block, 4)

    def back(order):
        order = np.array(order)
        return graph.flow[order[block][graph.tail] > order[block][graph.head]].sum()

    assert back(place) == min(back(order) for order in itertools.permutations(range(4)))
    assert sorted(rank_blocks(graph, np.arange(12) % 13, 13).tolist()) == list(range(13))


@pytest.mark.parametrize("edges", [[(2 * v, 2 * v + 1, 1) for v in range(60)], [(0, v, 1) for v in range(1, 60)]])
def test_equal_seeds_give_equal_blocks_where_few_eigenvalues_are_distinct(edges):
    graph = Dag.build([1] * (max(head for _, head, _ in edges) + 1), edges)
    found = [spectral_blocks(graph, 4, seed=1).tolist() for _ in range(4)]
    assert found == found[:1] * 4


@given(st.integers(0, 500))
def test_mending_leaves_no_edge_back_and_changes_nothing_else(seed):
    graph, random = random_graph(seed, 12), np.random.default_rng(seed)
    order, block = smooth_order(graph, 0), random.integers(0, 3, 12)
    onward, back = push_onward(graph, block, order), draw_back(graph, block, order)
    assert leads_onward(graph, onward) and leads_onward(graph, back)
    assert (onward >= block).all() and (back <= block).all()
    kept = partition(graph, 3, 0.8, seed=seed).block
    assert (push_onward(graph, kept, order) == kept).all() and (draw_back(graph, kept, order) == kept).all()


@given(st.integers(0, 300))
def test_a_relaxed_partition_keeps_its_bound_and_hardly_leads_back(seed):
    graph = random_graph(seed, 16, 0.3)
    block = np.random.default_rng(seed).permutation(np.arange(16) % 3)
    most = 1.3 * graph.loads(block, 3).max()
    found = relax(graph, block, 3, most, seed)

    def back(one):
        return graph.flow[one[graph.tail] > one[graph.head]].sum()

    assert back(found) <= back(block)
    assert graph.loads(found, 3).max() <= most and len(set(found.tolist())) == 3
    assert (found == relax(graph, block, 3, most, seed)).all()
    for mended in finish_blocks(graph, found, 3, most, seed):
        assert leads_onward(graph, mended) and graph.loads(mended, 3).max() <= most


@given(st.integers(0, 500))
def test_nothing_leads_back_however_small_a_flow_is(seed):
    drawn, random = random_graph(seed, 10, 0.4), np.random.default_rng(seed)
    flow = random.choice([0.0, 1e-3, 1.0, 1e7], len(drawn.flow))
    graph = Dag.build(drawn.demand, zip(drawn.tail.tolist(), drawn.head.tolist(), flow.tolist(), strict=True))
    found = partition_large(graph, 3, slack=0.6, seed=seed)
    assert leads_onward(graph, found.block)


def test_an_edge_without_flow_has_a_direction_too():
    graph = Dag.build([1] * 4, [(0, 1, 9), (2, 3, 9), (0, 3, 0), (2, 1, 0)])
    assert leads_onward(graph, partition_large(graph, 2, slack=0.5).block)
    nothing = Dag.build([1] * 20, [(v, v + 1, 0) for v in range(19)])
    assert leads_onward(nothing, partition_large(nothing, 3).block)


def test_a_graph_of_some_size_is_made_smaller_first():
    graph, _ = large_graph("random", seed=9, vertices=800, edges=2_400)
    found = split_by_coarsening(graph, 4, 240.0, seed=1)
    assert leads_onward(graph, found) and graph.loads(found, 4).max() <= 240
    one = join_pairs(graph, 60.0, odd=False, seed=1)
    assert one.graph.size < 0.9 * graph.size


@pytest.mark.parametrize("family", FAMILIES)
def test_of_graphs_of_all_families(family):
    graph, planted = large_graph(family, seed=5, vertices=400, edges=1_600, blocks=4)
    found = partition_large(graph, 4, seed=2)
    assert leads_onward(graph, found.block) and found.fits and found.loads.max() <= found.most == 120
    assert len(set(found.block.tolist())) == 4 and found.cut == graph.cut(found.block)
    assert found.block.tolist() == partition_large(graph, 4, seed=2).block.tolist()
    plain = partition(graph, 4, orders=5, seed=2)
    assert found.cut <= plain.cut
    if planted is not None:
        assert leads_onward(graph, planted) and found.cut <= 1.05 * graph.cut(planted)


@given(st.integers(0, 300))
def test_small_graphs_are_cut_too(seed):
    graph, blocks = random_graph(seed, 9), 2 + seed % 3
    found = partition_large(graph, blocks, slack=0.5, seed=seed)
    assert leads_onward(graph, found.block) and len(set(found.block.tolist())) == blocks
    coarse = split_by_coarsening(graph, blocks, found.most, seed)
    assert leads_onward(graph, coarse)


def test_more_blocks_than_vertices_are_refused():
    with pytest.raises(GraphError, match="blocks=3: 1 to the 2 vertices"):
        partition_large(Dag.build([1, 1], []), 3)
