"""Shares of what a node is busy with, and the weights that its instances have by them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.weights import shares_of_node, weights_on_node


def test_weights_by_hand():
    shares = shares_of_node([600, 300, 100])
    assert shares == pytest.approx([0.6, 0.3, 0.1])
    assert weights_on_node(80, 50, shares) == pytest.approx([40.8, 20.4, 6.8])
    assert weights_on_node(80, 50, shares, cores_share=1.0) == pytest.approx([48, 24, 8])
    assert weights_on_node(80, 50, shares, cores_share=0.0) == pytest.approx([30, 15, 5])


def test_busy_times_count_where_all_are_known_so_that_cheap_operators_are_light():
    tuples = [600, 300, 100]
    busy_s = [ms / 1000 * many for ms, many in zip((1, 4, 22), tuples, strict=True)]
    assert shares_of_node(tuples, busy_s) == pytest.approx([0.15, 0.3, 0.55])
    assert shares_of_node(tuples, [0.6, 1.2, math.nan]) == pytest.approx([0.6, 0.3, 0.1])
    assert shares_of_node([0, 0]).tolist() == shares_of_node([5, 5], [0.0, 0.0]).tolist() == [0, 0]


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=8), st.floats(0, 100), st.floats(0, 100))
def test_the_weights_on_a_node_are_what_it_is_busy_with(tuples, cores, memory):
    weights = weights_on_node(cores, memory, shares_of_node(tuples))
    assert weights.sum() == pytest.approx(0.6 * cores + 0.4 * memory)
    assert (np.argsort(weights, kind="stable") == np.argsort(tuples, kind="stable")).all() or cores + memory < 1e-6
