"""An hour of a job in the twin, with one operator whose answers are known by hand, and how schemes are compared."""

import numpy as np
import pytest

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob
from models.policy.rules.elasticity import Elasticity, PrintedElasticity
from pipelines.bench.placement import papers
from pipelines.bench.placement import testbeds as beds
from pipelines.bench.placement.elastic_run import run_hour

UNDER_WAY = 100
"""Records that may be under way: n full queues have the share ρ of their time with n ρ / (1 - ρ) of these."""


def hour(rps, instances, rule, minutes=60, pending=np.inf):
    """Instances of 250 records/s each, on a node with room for twenty; over 20 ms the job is slow."""
    job = ParallelJob(
        np.array([rps]), np.array([0.004]), np.array([instances]), np.array([[0.7, 0.1]]), (), pending=pending
    )
    node = Nodes(
        np.array([[20.0, 20.0]]), np.zeros((1, 2)), np.zeros(1, np.int64), np.zeros((1, 1)), slots=np.array([20]),
        bandwidth_mbps=np.array([100.0]),
    )  # fmt: skip
    return run_hour(beds.Testbed("one", job, node, 20.0), np.array([[instances]]), np.ones(minutes), rule)


def test_an_hour_of_fixed_instances_is_that_of_queues_with_one_server_each():
    """Four queues of 200 of 250 records/s: each record takes 1 / (250 - 200) s."""
    found = hour(800.0, 4, None)
    assert found.latency_ms == pytest.approx(20.0, rel=0.01)
    assert found.throughput_rps == pytest.approx(800.0, rel=1e-6)
    assert found.load == pytest.approx(0.8, rel=0.01) and found.instances == 4


def test_four_that_are_offered_twice_their_rate_become_seven_and_ten_from_the_thirteenth_minute_on():
    def elastic(minutes):
        return hour(2000.0, 4, Elasticity(), minutes, UNDER_WAY)

    first = elastic(13)  # the first minute that begins after 700 s is that of four: ρ = 100 / 104
    assert first.throughput_rps == pytest.approx(1000 * 100 / 104) and first.latency_ms == pytest.approx(104.0)
    assert [first.instances, elastic(15).instances, elastic(16).instances] == [7, 7, 10]  # two windows to cool down
    whole = elastic(60)
    assert whole.instances == 10  # 0.8 of their time
    last_ms = (48 * whole.latency_ms - 24 * elastic(36).latency_ms) / 24
    assert last_ms == pytest.approx(20.0, rel=0.01)


def test_idle_ones_are_halved_after_three_calm_minutes():
    found = [hour(100.0, 4, Elasticity(), minutes).instances for minutes in (14, 15, 60)]
    assert found == [4, 2, 1]


def test_as_printed_each_minute_adds_what_was_not_worked_on():
    """4 + 4 (1 - 962 / 2000), 6 + 6 (1 - 1415 / 2000), 8 + 8 (1 - 1852 / 2000), and nine work on all that comes."""
    found = [hour(2000.0, 4, PrintedElasticity(), minutes, UNDER_WAY).instances for minutes in (13, 14, 15, 60)]
    assert found == [6, 8, 9, 9] and hour(100.0, 4, PrintedElasticity()).instances == 4  # idle, and not slow


def test_the_four_domains_are_as_far_apart_as_stated():
    nodes = beds.four_domains(0.5)
    assert nodes.count == 12 and np.bincount(nodes.domain).tolist() == [3, 3, 3, 3]
    assert nodes.round_trip[0].tolist() == [0, 5, 10, 20] and (nodes.round_trip == nodes.round_trip.T).all()


def test_each_scheme_is_told_beside_the_fixed_instances_of_the_papers_rivals(monkeypatch):
    schemes = {name: papers.SCHEMES[name] for name in ("Storm default", "R-Storm")}
    for name, few in {
        "FACTORS": (1.0,), "SEEDS": 1, "MINUTES": 14, "SCHEMES": schemes,
        "HOW": {"fixed": None, "elastic": Elasticity()}, "testbeds": lambda *of: beds.testbeds(*of)[:1],
    }.items():  # fmt: skip
        monkeypatch.setattr(papers, name, few)
    found = papers.measure_papers()
    assert [*found] == ["words on Md-Stream's, steady", "words on Md-Stream's, fluctuating"]
    for each in found.values():
        assert each.keys() == schemes.keys()
        assert each["Storm default"]["fixed"]["Storm default"] == {"latency": 0, "throughput": 0, "load": 0}
        for one in (how for scheme in each.values() for how in scheme.values()):
            for rival in ("Storm default", "R-Storm"):
                other = each[rival]["fixed"]
                assert one[rival]["latency"] == pytest.approx(one["latency_ms"] / other["latency_ms"] - 1)
                assert one[rival]["load"] == pytest.approx(one["load"] / other["load"] - 1)
