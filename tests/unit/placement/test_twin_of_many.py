"""Many operators on many nodes: queues of known answers, a reference event by event, and what must always hold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob, StreamEdge
from models.placement.twin import follow
from models.placement.twin.follow import empty_state, follow_job, move_instances
from models.placement.twin.nodes_shared import slowdown
from models.placement.twin.station import STEP_S, follow_queue, load_of, records_at, time_in_queue_s
from tests.fakes.parallel_jobs import one_domain, random_job
from tests.fakes.path_latency import path_latency
from tests.fakes.queue_events import Events

MINUTES = 10


def settled(job, nodes, counts, minutes=MINUTES):
    """What the last minute of some at a steady load comes to."""
    _, course = follow_job(job, nodes, counts, empty_state(job, nodes), np.ones(int(minutes * 60 / STEP_S)), 60)
    return course


def one_operator(rps, service_ms, instances, pooled=False):
    return ParallelJob(
        np.array([rps]), np.array([service_ms / 1000]), np.array([instances]), np.ones((1, 2)), (), pooled
    )


def test_waits_of_several_servers_by_hand():
    assert records_at(1, 0.75) == pytest.approx(3)
    assert records_at(2, 0.75) == pytest.approx(2 * 0.75 / (1 - 0.75**2))
    for servers, load in itertools.product((1, 2, 5), (0.1, 0.6, 0.95)):
        assert load_of(records_at(servers, load), servers) == pytest.approx(load, abs=1e-9)
    assert time_in_queue_s(0.0, 3, 100.0) == pytest.approx(0.01) and time_in_queue_s(1.0, 1, 0.0) == np.inf


def test_a_step_of_an_overloaded_queue_by_hand():
    after, served = follow_queue(1e6, 1, 100.0, 150.0, 2.0)
    assert served == pytest.approx(100, rel=1e-4) and after == pytest.approx(1e6 + 100, rel=1e-6)
    assert follow_queue(5.0, 3, 0.0, 10.0, 1.0) == (15.0, 0.0)
    assert follow_queue(0.0, 2, 10.0, 0.0, 1.0) == (0.0, 0.0)


@given(st.integers(0, 5_000))
def test_a_queue_loses_no_record_and_serves_no_more_than_it_can(seed):
    random = np.random.default_rng(seed)
    records, servers = float(random.uniform(0, 50)), int(random.integers(1, 6))
    service, arrivals, step = random.uniform(0.5, 50, 3).tolist()
    after, served = follow_queue(records, servers, service, arrivals, step)
    assert after >= 0 and 0 <= served <= servers * service * (1 + 1e-9)
    assert after + served * step == pytest.approx(records + arrivals * step)
    more, _ = follow_queue(records + 1, servers, service, arrivals, step)
    assert more >= after - 1e-9


@pytest.mark.parametrize(("rps", "service_ms", "instances", "pooled"), [
    (80, 10, 1, False), (160, 10, 2, False), (160, 10, 2, True), (450, 10, 6, True),
])  # fmt: skip
def test_one_operator_is_its_queue(rps, service_ms, instances, pooled):
    nodes = one_domain([(8, 8)], slots=8)
    mu, rho = 1000 / service_ms, rps * service_ms / 1000 / instances
    known_s = 1 / (mu - rps / instances)
    if pooled:
        known_s = records_at(instances, rho) / rps
    course = settled(one_operator(rps, service_ms, instances, pooled), nodes, np.array([[instances]]))
    assert course.latency_ms[-1] == pytest.approx(1000 * known_s, rel=1e-3)
    assert course.throughput_rps[-1] == pytest.approx(rps, rel=1e-6)
    assert course.busy[-1, 0] == pytest.approx(rho * instances / 8, rel=1e-3)
    servers, queues = ([instances], 1) if pooled else ([1] * instances, instances)
    first = Events(servers, [service_ms / 1000] * queues, lambda *_: None, 1)
    mean_s, ended = first.run(rps / queues, 0, min(600.0, 96_000 / rps), 60)
    assert mean_s == pytest.approx(known_s, rel=0.1) and ended == pytest.approx(rps / queues, rel=0.05)


def test_a_chain_on_two_nodes_is_a_network_of_queues():
    far = Nodes(
        np.full((2, 2), 8.0), np.zeros((2, 2)), np.array([0, 1]), np.array([[0, 30.0], [30.0, 0]]),
        slots=np.full(2, 8), bandwidth_mbps=np.array([1.0, 10.0]),
    )  # fmt: skip
    job = ParallelJob(
        np.array([100.0, 0]), np.array([6, 4]) / 1000, np.array([1, 2]), np.ones((2, 2)),
        (StreamEdge(0, 1, 1.0, 1000.0),),
    )  # fmt: skip
    counts = np.array([[1, 0], [1, 1]])
    course = settled(job, far, counts)
    interfaces = 1000 / (125 - 50) + 1000 / (1250 - 50)  # half the records, 8 ms and 0.8 ms each
    known = 1000 / (1000 / 6 - 100) + 1000 / (250 - 50) + 0.5 * 0.05 + 0.5 * (15 + interfaces)
    assert course.latency_ms[-1] == pytest.approx(known, rel=1e-3) == course.worst_ms[-1]

    def route(random, queue):
        here = 1 if random.random() < 0.5 else 2
        return {0: (here, 5e-5), 1: None, 2: (3, 0.015), 3: (4, 0.0), 4: None}[queue]

    mean_s, _ = Events([1] * 5, [0.006, 0.004, 0.008, 0.0008, 0.004], route, 7).run(100, 0, 600, 60)
    assert 1000 * mean_s == pytest.approx(known, rel=0.1)


def test_instances_share_the_cores_of_a_node():
    one, both = np.array([1, 1]), np.array([1.0, 1.0])
    assert slowdown(one, both, 2.0, 0) == 1.0
    assert slowdown(one, both, 1.0, 0) == pytest.approx(2.0)
    assert slowdown(one, np.array([1.0, 0.3]), 1.0, 0) == pytest.approx(1.3)
    assert slowdown(np.array([3]), np.array([0.5]), 2.0, 0) == pytest.approx(0.75 + 0.25 * 1.5)
    full = settled(one_operator(300, 10, 4), one_domain([(2, 8)], slots=8), np.array([[4]]))
    assert full.throughput_rps[-1] == pytest.approx(200, rel=0.01) and full.busy[-1, 0] == pytest.approx(1, rel=0.01)
    assert full.load[-1, 0] > 2


def test_sources_wait_while_as_many_records_are_under_way_as_may_be():
    nodes = one_domain([(8, 8)], slots=8)
    job = replace(one_operator(90, 10, 1), pending=4.0)
    course = settled(job, nodes, np.array([[1]]))
    assert course.throughput_rps[-1] == pytest.approx(80, rel=1e-3)  # rho / (1 - rho) = 4
    assert course.latency_ms[-1] == pytest.approx(50, rel=1e-3)


def test_counts_of_another_layout_and_a_whole_number_that_may_be_under_way_are_compiled_no_second_time():
    """Which takes longer than all that is followed here."""
    nodes, steps = one_domain([(4, 8)] * 2, slots=8), np.ones(8)
    job = ParallelJob(
        np.array([50.0, 0]), np.full(2, 0.005), np.ones(2, int), np.ones((2, 2)), (StreamEdge(0, 1),), pending=4.0
    )
    counts = np.eye(2, dtype=int)
    _, course = follow_job(job, nodes, counts, empty_state(job, nodes), steps, 1.0)
    compiled = list(follow._follow.signatures)
    _, same = follow_job(replace(job, pending=4), nodes, np.asfortranarray(counts), empty_state(job, nodes), steps, 1.0)
    assert follow._follow.signatures == compiled
    np.testing.assert_array_equal(same.latency_ms, course.latency_ms)


def test_a_run_in_parts_is_the_run_as_a_whole():
    job, nodes = random_job(7)
    job, random = replace(job, arrivals_rps=3 * job.arrivals_rps, pending=5.0), np.random.default_rng(7)
    nodes = replace(nodes, bandwidth_mbps=np.full(6, 0.2))
    counts = np.array([np.bincount(random.integers(0, 6, many), minlength=6) for many in job.instances])
    scale = random.uniform(0.5, 1.5, 130)
    whole, _ = follow_job(job, nodes, counts, empty_state(job, nodes), scale)
    parts = empty_state(job, nodes)
    for low, high in ((0, 45), (45, 46), (46, 130)):
        parts, course = follow_job(job, nodes, counts, parts, scale[low:high])
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other)
    assert len(course.load) == 84 // 40


def test_what_comes_while_a_node_is_away_goes_to_others_and_what_waits_there_waits():
    nodes, job = one_domain([(4, 8)] * 2, slots=8), one_operator(100, 10, 2)
    counts, steps = np.array([[1, 1]]), int(120 / STEP_S)
    away = np.ones((steps, 2))
    away[steps // 3 : steps // 2, 0] = 0
    state, course = follow_job(job, nodes, counts, empty_state(job, nodes), np.ones(steps), 10, away)
    throughput = course.throughput_rps
    assert throughput[3] == pytest.approx(100, rel=1e-3) and course.busy[5, 0] == pytest.approx(0, abs=1e-6)
    assert throughput[4] < 100 < throughput[6] and throughput[-1] == pytest.approx(100, rel=0.01)
    assert throughput.sum() * 10 + state.at.sum() == pytest.approx(12_000)


def test_a_path_without_a_living_instance_counts_in_no_mean():
    nodes = one_domain([(4, 8)] * 2, slots=8)
    job = ParallelJob(
        np.array([50.0, 0, 0]), np.full(3, 0.005), np.ones(3, int), np.ones((3, 2)),
        (StreamEdge(0, 1), StreamEdge(0, 2)),
    )  # fmt: skip
    counts, steps = np.array([[1, 0], [1, 0], [0, 1]]), int(60 / STEP_S)
    away = np.ones((steps, 2))
    away[steps // 2 :, 1] = 0
    state, course = follow_job(job, nodes, counts, empty_state(job, nodes), np.ones(steps), 10, away)
    alone = 2 * 1000 / 150 + 0.05
    assert course.latency_ms[-1] == pytest.approx(alone, rel=0.02) and course.worst_ms[-1] == np.inf
    assert np.isfinite(course.load).all()
    held = state.at[2].sum() + state.leaving.sum() + state.coming.sum() + STEP_S * (state.sent.sum() + state.came.sum())
    assert held == pytest.approx(50 * 30, rel=0.05)


@given(st.integers(0, 500))
def test_no_record_is_lost_on_the_way_or_when_instances_move(seed):
    job, nodes = random_job(seed)
    job = ParallelJob(job.arrivals_rps, job.service_s, job.instances, job.need,
                      tuple(one._replace(factor=1.0) for one in job.edges[: job.operators - 1]))  # fmt: skip
    nodes, random = replace(nodes, bandwidth_mbps=np.full(6, 0.3)), np.random.default_rng(seed)
    ends = job.operators - len({one.tail for one in job.edges})
    state, out, steps = empty_state(job, nodes), 0.0, int(30 / STEP_S)
    for _ in range(3):
        counts = np.array([np.bincount(random.integers(0, 6, many), minlength=6) for many in job.instances])
        state = move_instances(state, counts)
        state, course = follow_job(job, nodes, counts, state, np.ones(steps), 10)
        out += course.throughput_rps.sum() * 10
    paths = np.zeros(job.operators)
    for own in reversed(job.order):
        paths[own] = sum(paths[one.head] for one in job.edges if one.tail == own) or 1.0
    heads, came = np.array([one.head for one in job.edges]), 90 * job.arrivals_rps[0] * paths[0]
    assert (state.at[counts == 0] == 0).all()
    held = (state.at.sum(axis=1) * paths).sum() + ((state.leaving + state.coming).sum(axis=1) * paths[heads]).sum()
    held += STEP_S * ((state.sent.sum(axis=(1, 2)) * paths[heads]).sum() + (state.came.sum(axis=1) * paths).sum())
    assert ends >= 1 and out + held == pytest.approx(came, rel=1e-6)


@given(st.integers(0, 500))
def test_a_light_load_has_the_latency_of_the_closed_form(seed):
    job, nodes = random_job(seed)
    random = np.random.default_rng(seed)
    counts = np.array([np.bincount(random.integers(0, 6, many), minlength=6) for many in job.instances])
    slow = ParallelJob(job.arrivals_rps * 0.2, job.service_s, job.instances, job.need, job.edges)
    course = settled(slow, nodes, counts, 2)
    assert course.worst_ms[-1] == pytest.approx(path_latency(slow, nodes, counts).worst, rel=0.05)
