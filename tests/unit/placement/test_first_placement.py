"""Classes, distances and first placement by the numbers of the Pa-Stream seed, step by step, and their constraints."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from models.placement.allocation.nodes import Nodes
from models.placement.instances import initial
from models.placement.instances.fronts import is_cores_node, is_cores_operator
from models.placement.instances.initial import distance_ratios, place_initially
from models.placement.instances.job import ParallelJob, has_room
from pipelines.bench.placement.testbeds import three_kinds
from tests.fakes.parallel_jobs import counting, one_domain

GHZ, A, B, C = 2.0, 0, 1, 2


def alone(instances, need):
    """An operator that nothing reaches."""
    return ParallelJob(np.ones(1), np.full(1, 1e-3), np.array([instances]), np.array([need], float), ())


def test_shares_of_the_paper_s_workers_by_hand():
    capacity = three_kinds().capacity * [GHZ, 1.0]
    assert capacity.sum(axis=0).tolist() == [36, 30]
    shares = [[0.0556, 0.0667], [0.0556, 0.1333], [0.2222, 0.1333]]
    assert capacity / capacity.sum(axis=0) == pytest.approx(np.repeat(shares, 3, axis=0), abs=1e-4)
    assert is_cores_node(capacity).tolist() == [False] * 6 + [True] * 3
    assert is_cores_node(three_kinds().capacity).tolist() == [False] * 6 + [True] * 3


def test_shares_of_operators_by_hand():
    job = counting()
    asked = job.need * job.instances[:, None]
    assert asked.sum(axis=0).tolist() == [9, 8]
    shares = [[0.2222, 0.5], [0.6667, 0.375], [0.1111, 0.125]]
    assert asked / asked.sum(axis=0) == pytest.approx(np.array(shares), abs=1e-4)
    assert is_cores_operator(job).tolist() == [False, True, False]
    need = np.array([[4.0, 1], [1.5, 1], [1, 4]])  # of five of the first, cores are what there is most asked of
    for many, cores in ((1, [True, True, False]), (5, [True, False, False])):
        job = ParallelJob(np.ones(3), np.full(3, 1e-3), np.array([many, 1, 1]), need, ())
        assert is_cores_operator(job).tolist() == cores


@given(st.integers(1, 5).flatmap(lambda many: arrays(np.int64, (many, 2), elements=st.integers(1, 6))))
def test_there_are_nodes_of_cores_where_shares_differ_and_nowhere_else(capacity):
    cores, memory = (sum(map(int, column)) for column in capacity.T)
    differ = any(Fraction(int(own), cores) != Fraction(int(other), memory) for own, other in capacity)
    found = is_cores_node(capacity.astype(float))
    assert found.any() == differ and not found.all()


def test_a_first_placement_step_by_step(monkeypatch):
    fronts = []

    def noted(points, among):
        fronts.append(first_front(points, among))
        return fronts[-1]

    first_front = initial.first_front
    monkeypatch.setattr(initial, "first_front", noted)
    three = one_domain([(4, 4), (8, 4), (2, 8)], slots=4, bandwidth=[100, 200, 100])
    job = counting()
    found = place_initially(job, three)
    assert fronts == [[B, C], [B, C], [B], [A, B], [B], [A, B]]
    assert found.tolist() == [[0, 0, 2], [1, 2, 0], [0, 1, 0]]
    assert is_cores_node(three.capacity).tolist() == [True, True, False]
    way = distance_ratios(three)
    split_rps, count_rps = (
        job.edge_rps(edge) / (job.instances[edge.tail] * job.instances[edge.head]) for edge in job.edges
    )
    assert (split_rps * way @ found[0])[[A, B]] == pytest.approx([333.3, 333.3], abs=0.1)
    assert (count_rps * way @ found[1])[[A, B]] == pytest.approx([2000, 1000])


def test_a_node_without_a_slot_hides_none_that_it_dominates():
    two = Nodes(
        np.array([[8.0, 8], [4, 4]]), np.zeros((2, 2)), np.zeros(2, int), np.zeros((1, 1)), slots=np.array([0, 2])
    )
    assert place_initially(alone(2, (1, 1)), two).tolist() == [[0, 2]]


def test_of_equal_nodes_the_first_one_is_taken():
    assert place_initially(alone(1, (1, 1)), one_domain([(4, 4)] * 3, slots=4)).tolist() == [[1, 0, 0]]


def test_distances_for_choosing_are_ratios_of_round_trips():
    far = Nodes(np.full((3, 2), 4.0), np.zeros((3, 2)), np.array([0, 0, 1]), np.array([[0, 20.0], [20, 0]]))
    assert distance_ratios(far).tolist() == [[0, 1, 40], [1, 0, 40], [40, 40, 0]]


@pytest.mark.parametrize(("counts", "room"), [
    ([[3, 0], [0, 1]], True), ([[3, 0], [1, 0]], False),  # cores
    ([[0, 2], [0, 1]], True), ([[0, 2], [0, 2]], False),  # memory
    ([[1, 0], [3, 0]], True), ([[1, 0], [4, 0]], False),  # slots
    ([[2, 0], [0, 0]], False), ([[0, 0], [0, 1]], False),  # an operator without an instance
])  # fmt: skip
def test_constraints_by_hand(counts, room):
    """Cores, memory and slots of two nodes (eq. 7 to 9), each used up and exceeded by itself."""
    two = Nodes(
        np.array([[6.0, 10], [10, 7]]), np.zeros((2, 2)), np.zeros(2, int), np.zeros((1, 1)), slots=np.array([4, 4])
    )
    job = ParallelJob(np.ones(2), np.full(2, 1e-3), np.ones(2, int), np.array([[2.0, 3], [0.3, 1]]), ())
    assert has_room(job, two, np.array(counts)) == room
