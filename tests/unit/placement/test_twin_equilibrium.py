"""Latency in equilibrium where instances share cores: by hand, and beside the twin that follows queues through time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob, StreamEdge
from models.placement.instances.moved import improve
from models.placement.twin.equilibrium import SharedLatency
from models.placement.twin.follow import empty_state, follow_job
from models.placement.twin.station import STEP_S
from tests.fakes.parallel_jobs import one_domain, random_job
from tests.fakes.path_latency import path_latency


def chain(rps, service_ms, instances):
    m = len(service_ms)
    arrivals = np.zeros(m)
    arrivals[0] = rps
    edges = tuple(StreamEdge(own, own + 1) for own in range(m - 1))
    return ParallelJob(arrivals, np.array(service_ms) / 1000, np.array(instances), np.full((m, 2), 0.1), edges)


def test_a_chain_with_cores_enough_has_the_latency_of_its_path():
    far = Nodes(np.full((3, 2), 8.0), np.zeros((3, 2)), np.array([0, 1, 1]), np.array([[0, 40.0], [40.0, 0]]))
    job, counts = chain(300, (2, 2.5, 1), (2, 2, 1)), np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert SharedLatency.of(job, far).ms(counts) == pytest.approx(path_latency(job, far, counts).worst)


def test_the_whole_latency_of_a_chain_by_hand():
    """5, 10 and 10 ms at the operators, 10.025 and 0.5 ms between them."""
    far = Nodes(np.full((3, 2), 8.0), np.zeros((3, 2)), np.array([0, 1, 0]), np.array([[0, 40.0], [40.0, 0]]))
    job, counts = chain(600, (2, 2.5, 2.5), (2, 2, 1)), np.array([[1, 1, 0], [2, 0, 0], [0, 0, 1]])
    job = replace(job, edges=(StreamEdge(0, 1), StreamEdge(1, 2, 0.5)))
    assert SharedLatency.of(job, far).ms(counts) == pytest.approx(35.525)


def test_records_count_by_how_many_take_a_way():
    two = one_domain([(8, 8)] * 2, slots=8)
    job = ParallelJob(
        np.array([10.0, 0, 0]), np.array([1, 1, 5]) / 1000, np.ones(3, int), np.full((3, 2), 0.1),
        (StreamEdge(0, 1, 3.0), StreamEdge(0, 2, 1.0)),
    )  # fmt: skip
    counts = np.array([[1, 0], [1, 0], [0, 1]])
    source, quick, slow = 1 / 0.99, 1 / 0.97, 5 / 0.95
    sent = 2 * 800 / 1e12 * 1000  # out and in, of two interfaces that nobody else uses
    expected = source + (3 * (0.05 + quick) + 0.5 + sent + slow) / 4
    assert SharedLatency.of(job, two).ms(counts) == pytest.approx(expected, rel=1e-6)


def test_two_on_one_core_slow_each_other_as_often_as_both_are_busy():
    job, one = chain(500, (0.6, 0.6), (1, 1)), one_domain([(1, 8)], slots=8)
    busy = 0.3
    for _ in range(200):
        busy = 0.3 * (1 + busy)  # the other is busy for that share of the time, and halves the speed then
    service_ms = 0.6 * (1 + busy)
    expected = 2 * service_ms / (1 - busy) + 0.05
    assert SharedLatency.of(job, one).ms(np.array([[1], [1]])) == pytest.approx(expected, rel=1e-3)


def test_what_falls_behind_costs_the_more_the_more_it_does():
    nodes = one_domain([(8, 8)] * 2, slots=8)
    found = [SharedLatency.of(chain(rps, (1,), (1,)), nodes).ms(np.array([[1, 0]])) for rps in (900, 990, 1100, 1300)]
    assert found == sorted(found) and np.isfinite(found).all()
    assert found[3] - found[2] == pytest.approx(6000)


@given(st.integers(0, 300))
def test_it_is_what_the_twin_settles_at(seed):
    job, nodes = random_job(seed)
    nodes = replace(nodes, capacity=np.full((6, 2), 1.0))
    random = np.random.default_rng(seed)
    counts = np.array([np.bincount(random.integers(0, 6, many), minlength=6) for many in job.instances])
    busiest = float((job.taken_rps * job.service_s / job.instances).max())
    job = replace(job, arrivals_rps=job.arrivals_rps * 0.1 / busiest)
    _, course = follow_job(job, nodes, counts, empty_state(job, nodes), np.ones(int(60 / STEP_S)), 15)
    assert SharedLatency.of(job, nodes).ms(counts) == pytest.approx(course.latency_ms[-1], rel=0.03)


def test_nodes_change_places_where_no_single_move_helps():
    far = Nodes(
        np.full((2, 2), 2.0), np.zeros((2, 2)), np.array([0, 1]), np.array([[0, 40.0], [40, 0]]), slots=np.full(2, 2),
    )  # fmt: skip
    job = replace(chain(10, (1, 1), (2, 2)), need=np.ones((2, 2)))

    def cost(counts):
        """The second operator is wanted on the first node."""
        return {0: 1.0, 1: 2.0, 2: 0.0}[int(counts[1, 0])]

    found = improve(job, far, np.array([[2, 0], [0, 2]]), cost)
    assert found.tolist() == [[0, 2], [2, 0]]
