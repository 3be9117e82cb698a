"""Instances on nodes: fronts, first placements, distances and waits by hand, and what must hold of every scheme."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.allocation.nodes import Nodes
from models.placement.baselines.ants import Colony, chances, search_places, strengthen
from models.placement.baselines.stand_ins import place_by_ants, place_within_latency
from models.placement.baselines.storm import misfit, place_by_resources, place_in_turn, slots_in_turn
from models.placement.graph import GraphError
from models.placement.instances.blocks import place_by_blocks
from models.placement.instances.fronts import is_cores_node, is_cores_operator, pareto_fronts
from models.placement.instances.initial import NoRoomError, place_initially
from models.placement.instances.job import ParallelJob, StreamEdge, count_instances, free_of, has_room
from models.placement.instances.latency import distances_ms, waits_ms
from models.placement.instances.moved import add_instances, improve, take_instances
from tests.fakes.parallel_jobs import counting, one_domain, random_job
from tests.fakes.path_latency import edge_ms, path_latency

SCHEMES = {
    "initial": lambda job, nodes: place_initially(job, nodes),
    "blocks": lambda job, nodes: place_by_blocks(job, nodes),
    "in turn": lambda job, nodes: place_in_turn(job, nodes),
    "by resources": lambda job, nodes: place_by_resources(job, nodes),
    "within latency": lambda job, nodes: place_within_latency(job, nodes, 40.0),
    "ants": lambda job, nodes: place_by_ants(job, nodes, seed=1),
}


def test_fronts_and_classes_by_hand():
    kinds = np.array([[2, 2, 200], [2, 4, 300], [8, 4, 100]], float)
    assert pareto_fronts(kinds) == [[1, 2], [0]]
    nine = np.repeat(kinds[:, :2], 3, axis=0)
    assert is_cores_node(nine).tolist() == [False] * 6 + [True] * 3
    five = np.array([[8, 16, 1000], [16, 8, 500], [4, 32, 500], [8, 8, 400], [4, 8, 400]], float)
    assert pareto_fronts(five) == [[0, 1, 2], [3], [4]]
    assert is_cores_node(five[:, :2]).tolist() == [False, True, False, True, False]
    assert is_cores_operator(counting()).tolist() == [False, True, False]


def test_a_first_placement_by_hand():
    three = one_domain([(4, 4), (8, 4), (2, 8)], slots=4, bandwidth=[100, 200, 100])
    job = counting()
    found = place_initially(job, three)
    assert found.tolist() == [[0, 0, 2], [1, 2, 0], [0, 1, 0]]
    assert free_of(job, three, found).tolist() == [[2, 3], [3, 1], [0, 4]]
    assert (three.slots - found.sum(axis=0)).tolist() == [3, 1, 2]


def test_an_instance_without_room_is_told():
    with pytest.raises(NoRoomError, match=r"operator 0, instance 2 of 2: no node has 1 cores, 2 GB and a slot free"):
        place_initially(counting(), one_domain([(4, 3), (1, 1)], slots=4))


def test_slots_are_dealt_out_in_turn_by_hand():
    three = one_domain([(4, 4)] * 3, slots=2)
    assert slots_in_turn(three, 4) == [0, 1, 2, 0]
    job = ParallelJob(np.array([1.0, 0, 0, 0]), np.full(4, 1e-3), np.array([1, 3, 2, 1]), np.ones((4, 2)), ())
    four = one_domain([(4, 4)] * 4, slots=[2, 1, 1, 0])  # the same four slots
    assert place_in_turn(job, four).tolist() == [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0]]


def test_r_storm_takes_the_nearest_fit_by_hand():
    free = np.array([[1, 1], [0.5, 0.5], [0.15, 0.9], [1, 0.2]])
    found = misfit(free, np.array([0.2, 0.25]), np.array([0, 0.5, 0, 0]))
    assert found == pytest.approx([1.0966, 0.6344, 0.6519 + 1, np.inf], abs=1e-4) and found.argmin() == 1


def test_ants_choose_and_strengthen_by_hand():
    assert chances(np.array([1.0, 2.0]), np.array([0.5, 0.25])) == pytest.approx([2 / 3, 1 / 3])
    assert float(strengthen(np.array(1.0), 4.0)) == pytest.approx(1.15)
    assert (float(strengthen(np.array(0.001), 1e9)), float(strengthen(np.array(20.0), 4.0))) == (0.01, 10.0)


def test_ants_put_together_what_talks_and_keep_to_the_room():
    flow = np.zeros((4, 4))
    flow[0, 1] = flow[1, 0] = flow[2, 3] = flow[3, 2] = 5.0
    colony = Colony(flow, np.array([[0, 20.0], [20.0, 0]]), np.ones((4, 1)), np.array([[2.0], [2.0]]))
    place = search_places(colony, np.full(4, -1), seed=3)
    assert place[0] == place[1] != place[2] == place[3] and colony.cost(place) == 0
    assert colony.cost(np.zeros(4, int)) == pytest.approx(1000.0)
    assert search_places(colony, np.array([1, -1, 0, 0]), 3).tolist() == [1, 1, 0, 0]


def test_latency_of_a_chain_by_hand():
    far = Nodes(
        np.full((3, 2), 8.0), np.zeros((3, 2)), np.array([0, 1, 1]), np.array([[0, 40.0], [40.0, 0]]),
    )  # fmt: skip
    job = ParallelJob(
        np.array([600.0, 0, 0]), 1 / np.array([500, 400, 400]), np.array([2, 2, 1]), np.ones((3, 2)),
        (StreamEdge(0, 1), StreamEdge(1, 2, 0.5)),
    )  # fmt: skip
    assert job.taken_rps.tolist() == [600, 600, 300]
    counts = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert waits_ms(job, counts) == pytest.approx([5, 10, 10])
    assert edge_ms(far, counts, job.edges[0]) == pytest.approx(10.025)
    within = np.array([[1, 1, 0], [0, 2, 0], [0, 0, 1]])
    assert edge_ms(far, within, job.edges[1]) == pytest.approx(0.5)
    both = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0]])
    assert path_latency(job, far, both).worst == pytest.approx(25 + 10.025 + 10.025)
    one = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert path_latency(job, far, one).worst == pytest.approx(25 + 10.025 + (20 + 0.5) / 2)
    slow = ParallelJob(job.arrivals_rps * 3, job.service_s, job.instances, job.need, job.edges)
    assert path_latency(slow, far, one).worst == np.inf


def test_the_whole_latency_of_a_chain_by_hand():
    """Half the first stream stays on a node, half has 20 ms to go; the second one goes to a node of the same domain."""
    far = Nodes(
        np.full((3, 2), 8.0), np.zeros((3, 2)), np.array([0, 1, 0]), np.array([[0, 40.0], [40.0, 0]]),
    )  # fmt: skip
    job = ParallelJob(
        np.array([600.0, 0, 0]), 1 / np.array([500, 400, 400]), np.array([2, 2, 1]), np.ones((3, 2)),
        (StreamEdge(0, 1), StreamEdge(1, 2, 0.5)),
    )  # fmt: skip
    counts = np.array([[1, 1, 0], [2, 0, 0], [0, 0, 1]])
    assert [edge_ms(far, counts, one) for one in job.edges] == pytest.approx([10.025, 0.5])
    found = path_latency(job, far, counts)
    assert found.worst == pytest.approx(35.525) and found.mean == found.worst


def test_three_domains_of_a_node_are_slower_than_one_of_three():
    """Sentences, words and counts, dealt out in turn. Md-Stream paper, Y(3,1) and Y(1,3)."""
    job = counting(instances=(2, 4, 4), need=((0.1, 0.1),) * 3, rps=100.0)
    trips = np.array([[0, 10.0, 20], [10, 0, 15], [20, 15, 0]])
    apart = Nodes(np.full((3, 2), 2.0), np.zeros((3, 2)), np.arange(3), trips, slots=np.full(3, 4))
    together = one_domain([(2.0, 2.0)] * 3, slots=4)
    near, far = (path_latency(job, nodes, place_in_turn(job, nodes)) for nodes in (together, apart))
    assert far.mean > near.mean + 5 and far.worst > near.worst


def test_bytes_take_their_time_between_nodes_only():
    two = one_domain([(8, 8)] * 2, slots=8, bandwidth=[100, 10])
    job = ParallelJob(
        np.array([1.0, 0]), np.full(2, 1e-3), np.array([1, 1]), np.ones((2, 2)), (StreamEdge(0, 1, 1, 1000),)
    )
    assert edge_ms(two, np.array([[1, 0], [0, 1]]), job.edges[0]) == pytest.approx(0.5 + 0.8)
    assert edge_ms(two, np.array([[1, 0], [1, 0]]), job.edges[0]) == pytest.approx(0.05)
    assert distances_ms(two).tolist() == [[0.05, 0.5], [0.5, 0.05]]


def test_mean_and_worst_path_of_a_fork():
    two = one_domain([(8, 8)] * 2, slots=8)
    job = ParallelJob(
        np.array([10.0, 0, 0]), np.array([1, 1, 5]) / 1000, np.array([1, 1, 1]), np.ones((3, 2)),
        (StreamEdge(0, 1), StreamEdge(0, 2)),
    )  # fmt: skip
    counts = np.array([[1, 0], [1, 0], [0, 1]])
    source, quick, slow = waits_ms(job, counts)
    found = path_latency(job, two, counts)
    assert found.worst == pytest.approx(source + 0.5 + slow, rel=1e-3)
    assert found.mean == pytest.approx(source + (0.05 + quick + 0.5 + slow) / 2, rel=1e-3)


def test_two_streams_between_two_operators_keep_the_order():
    job = ParallelJob(
        np.array([100.0, 0, 0, 0]), np.full(4, 1e-3), np.ones(4, int), np.ones((4, 2)),
        (StreamEdge(0, 1), StreamEdge(0, 1), StreamEdge(0, 2), StreamEdge(2, 1), StreamEdge(1, 3)),
    )  # fmt: skip
    assert job.order == [0, 2, 1, 3] and job.taken_rps.tolist() == [100, 300, 100, 300]


def test_blocks_of_instances_are_balanced_and_told_where_they_have_no_room():
    pairs = tuple(StreamEdge(2 * one, 2 * one + 1, 1.0) for one in range(3))
    job = ParallelJob(np.array([9.0, 0] * 3), np.full(6, 1e-3), np.ones(6, int), np.tile([1.0, 0.1], (6, 1)), pairs)
    three = one_domain([(4, 8)] * 3, slots=8)
    found = place_by_blocks(job, three, slack=0.05)
    assert sorted(found.sum(axis=0).tolist()) == [2, 2, 2]
    assert all(found[one].argmax() == found[one + 1].argmax() for one in (0, 2, 4))
    with pytest.raises(NoRoomError, match=r"6 instances ask for 3\.00 of the largest node"):
        place_by_blocks(job, one_domain([(2, 8)] * 3, slots=8))
    with pytest.raises(NoRoomError, match="there is no node"):
        place_by_blocks(job, one_domain(np.zeros((0, 2)), slots=8))


def test_the_lc_stand_in_wakes_no_node_where_that_does_not_help():
    far = Nodes(np.full((2, 2), 8.0), np.zeros((2, 2)), np.array([0, 1]), np.array([[0, 40.0], [40, 0]]))
    job = ParallelJob(np.array([900.0, 0]), np.full(2, 1e-3), np.array([1, 2]), np.ones((2, 2)), (StreamEdge(0, 1),))
    assert place_within_latency(job, far, 1.0).tolist() == [[1, 0], [2, 0]]
    tight = Nodes(np.full((2, 2), 2.0), np.zeros((2, 2)), np.array([0, 0]), np.zeros((1, 1)))
    assert place_within_latency(job, tight, 100.0).tolist() == [[1, 0], [1, 1]]


def test_the_ant_stand_in_puts_the_most_talkative_together():
    job = ParallelJob(
        np.array([90.0, 0, 0]), np.full(3, 1e-3), np.ones(3, int), np.ones((3, 2)), (StreamEdge(0, 1), StreamEdge(1, 2))
    )
    found = place_by_ants(job, one_domain([(3, 8)] * 3, slots=8))
    assert found.sum(axis=0).tolist() == [3, 0, 0]


def test_instances_come_where_they_talk_and_go_where_they_do_not():
    far = Nodes(np.full((3, 2), 4.0), np.zeros((3, 2)), np.array([0, 0, 1]), np.array([[0, 40.0], [40, 0]]))
    job = ParallelJob(np.array([90.0, 0]), np.full(2, 1e-3), np.array([2, 1]), np.ones((2, 2)), (StreamEdge(0, 1),))
    counts = np.array([[2, 0, 0], [1, 0, 0]])
    more = add_instances(job, far, counts, 1, 3)
    assert more.tolist() == [[2, 0, 0], [2, 2, 0]]
    full = add_instances(job, far, np.array([[4, 0, 0], [0, 4, 4]]), 1, 2)
    assert full.tolist() == [[4, 0, 0], [0, 4, 4]]
    assert take_instances(job, far, np.array([[2, 0, 0], [1, 0, 1]]), 1, 5).tolist() == [[2, 0, 0], [1, 0, 0]]


@settings(max_examples=15)
@given(st.integers(0, 100))
def test_what_is_improved_has_room_and_is_not_worse(seed):
    job, nodes = random_job(seed, nodes=4)
    begun = place_in_turn(job, nodes)

    def cost(counts):
        return path_latency(job, nodes, counts).worst

    found = improve(job, nodes, begun, cost)
    assert has_room(job, nodes, found) and cost(found) <= cost(begun)
    assert found.sum(axis=1).tolist() == job.instances.tolist()


def test_what_is_no_job_is_refused():
    with pytest.raises(GraphError, match="at least 1 of each"):
        counting(instances=(1, 0, 1))
    with pytest.raises(GraphError, match="cycle"):
        ParallelJob(np.ones(2), np.ones(2), np.ones(2, int), np.ones((2, 2)), (StreamEdge(0, 1), StreamEdge(1, 0)))
    with pytest.raises(GraphError, match="one of each of the 2 nodes"):
        Nodes(np.ones((2, 2)), np.zeros((2, 2)), np.zeros(2, int), np.zeros((1, 1)), slots=np.ones(3, int))


@given(st.integers(0, 2_000), st.sampled_from(sorted(SCHEMES)))
def test_of_every_scheme(seed, name):
    job, nodes = random_job(seed)
    found = SCHEMES[name](job, nodes)
    assert found.sum(axis=1).tolist() == job.instances.tolist() and (found >= 0).all()
    assert (found == SCHEMES[name](job, nodes)).all()
    assert has_room(job, nodes, found)  # there is more than enough of all, if it is not all put on one node


@given(st.integers(0, 2_000))
def test_traffic_between_instances_adds_up(seed):
    job, nodes = random_job(seed)
    graph = job.between_instances()
    assert graph.flow.sum() == pytest.approx(sum(job.edge_rps(one) for one in job.edges))
    assert graph.demand.sum() == pytest.approx((job.taken_rps * job.service_s).sum())
    places = np.random.default_rng(seed).integers(0, nodes.count, graph.size)
    counts = count_instances(job, nodes, places)
    ways = sum(job.edge_rps(one) * edge_ms(nodes, counts, one) for one in job.edges)
    distance, sizes = distances_ms(nodes), {(one.tail, one.head): one.bytes for one in job.edges}
    owners = job.owners()
    for tail, head, flow in zip(graph.tail, graph.head, graph.flow, strict=True):
        one, other = places[tail], places[head]
        sent = 0.0 if one == other else sizes[owners[tail], owners[head]] * 8 / 1e6
        ways -= flow * (distance[one, other] + sent)
    assert ways == pytest.approx(0.0, abs=1e-6)


@given(st.integers(0, 2_000))
def test_no_node_of_a_front_dominates_another_of_it(seed):
    points = np.random.default_rng(seed).integers(0, 5, (8, 3)).astype(float)
    fronts = pareto_fronts(points)
    assert sorted(point for front in fronts for point in front) == list(range(8))

    def dominates(one, other):
        return (points[one] >= points[other]).all() and (points[one] > points[other]).any()

    for number, front in enumerate(fronts):
        assert not any(dominates(one, other) for one in front for other in front)
        if number:
            assert all(any(dominates(one, other) for one in fronts[number - 1]) for other in front)
