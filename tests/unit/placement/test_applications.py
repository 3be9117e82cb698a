"""Placements as applications, and what each may take of the promise: by hand, and what must always hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.settings import ROOT
from configs.topology import Topology, load_topology
from models.placement.elastic.ahead import downstream, reaching
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.moved import place_block
from models.placement.plan.shares import path_shares
from models.placement.rates import edges_of, operators_in_order, rates_of


def placed(topology, *blocks, latency_s=1.0):
    made = tuple(Block(tuple(block.split()), "east", 1, 0.5, latency_s) for block in blocks)
    return Placement(made, 1.0, 1.0, True)


def adverts():
    return load_topology("adverts", ROOT / "configs" / "topologies")


def test_what_the_applications_of_two_queries_read_and_write():
    first, second = applications_of(adverts(), placed(adverts(), "parse views project", "join count"))
    assert first.name == "adverts.parse" and second.name == "adverts.join"
    assert first.reads == {"events": "events"} and first.writes == {"project": "adverts.project"}
    assert second.reads == {"project": "adverts.project"} and second.writes == {"count": "adverts.count"}


def test_an_operator_whose_records_two_queries_take_writes_them_once():
    job = Topology.model_validate({
        "name": "fan", "broker": "east", "sources": {"in": {"rps": 10.0}}, "clusters": {"east": {"cores": 8}},
        "operators": {name: {"of": of, "work_ms": 1} for name, of in
                      (("a", ["in"]), ("b", ["a"]), ("c", ["a", "in"]))},
    })  # fmt: skip
    made = applications_of(job, placed(job, "a", "b", "c"))
    assert [one.writes for one in made] == [{"a": "fan.a"}, {"b": "fan.b"}, {"c": "fan.c"}]
    assert [dict(one.reads) for one in made] == [{"in": "in"}, {"a": "fan.a"}, {"a": "fan.a", "in": "in"}]
    fused = applications_of(job, placed(job, "a b", "c"))
    assert fused[0].writes == {"a": "fan.a", "b": "fan.b"}


def random_topology(seed):
    random = np.random.default_rng(seed)
    names = [f"o{number}" for number in range(int(random.integers(2, 7)))]
    operators = {}
    for number, name in enumerate(names):
        before = [one for one in names[:number] if random.random() < 0.4] or ["in"]
        operators[name] = {"of": before, "work_ms": float(random.uniform(0.5, 3)), "selectivity": 0.8}
    return Topology.model_validate({
        "name": "job", "broker": "east", "sources": {"in": {"rps": 100.0}}, "operators": operators,
        "clusters": {"east": {"cores": 64}},
    })  # fmt: skip


@given(st.integers(0, 500))
def test_every_stream_between_queries_has_one_writer_and_its_readers(seed):
    job, random = random_topology(seed), np.random.default_rng(seed)
    names = operators_in_order(job)
    cuts = sorted(random.choice(len(names), int(random.integers(0, len(names))), replace=False).tolist())
    blocks = [" ".join(part) for low, high in itertools.pairwise([0, *cuts, len(names)]) if (part := names[low:high])]
    made = applications_of(job, placed(job, *blocks))
    written = [topic for one in made for topic in one.writes.values()]
    assert len(written) == len(set(written))
    for one in made:
        assert all(topic in ("in", *written) for topic in one.reads.values())
        for own in one.operators:
            assert all(other in one.operators or other in one.reads for other in job.operators[own].of)
    ends = {edge.tail for edge in edges_of(job) if not edge.head}
    assert {f"job.{name}" for name in ends} <= set(written)


def test_shares_of_a_chain_and_of_a_fork_by_hand():
    chain = adverts()
    found = path_shares(chain, Placement(
        (Block(("parse", "views", "project"), "east", 1, 0.5, 1.0), Block(("join", "count"), "east", 1, 0.5, 3.0)),
        1.0, 4.0, True,
    ))  # fmt: skip
    assert [one.seconds for one in found] == pytest.approx([2, 6])


@given(st.integers(0, 300))
def test_shares_of_every_path_come_to_the_target_at_most(seed):
    job, random = random_topology(seed), np.random.default_rng(seed)
    names = operators_in_order(job)
    blocks = tuple(Block((name,), "east", 1, 0.5, float(random.uniform(0.2, 3))) for name in names)
    found = path_shares(job, Placement(blocks, 1.0, 1.0, True))

    def longest(name):
        own = next(one.seconds for one in found if blocks[one.block].operators == (name,))
        return own + max((longest(other) for other in job.operators[name].of if other != "in"), default=0.0)

    assert max(longest(name) for name in names) == pytest.approx(job.target_s)
    assert all(one.seconds >= blocks[one.block].latency_s * 1e-9 for one in found)


def test_a_query_with_fewer_executors_than_its_load_needs_leaves_the_others_their_shares():
    chain = adverts()
    busy = chain.model_copy(update={"sources": {"events": chain.sources["events"].model_copy(update={"rps": 1200.0})}})
    blocks = (("parse", "views", "project"), ("join", "count"))
    made = Measure(busy, rates_of(busy)).with_executors(blocks, ("east", "west"))
    moved = place_block(busy, made, blocks[0], "west", 1)
    assert made.blocks[0].executors > 2 and moved.blocks[0].latency_s > 60
    shares = [one.seconds for one in path_shares(busy, made)]
    assert [one.seconds for one in path_shares(busy, moved)] == pytest.approx(shares)
    more = place_block(busy, made, blocks[0], "west", made.blocks[0].executors + 1)
    assert path_shares(busy, more)[0].seconds < shares[0]


def test_a_forecast_reaches_a_later_query_later_by_hand():
    ahead = np.array([[100.0, 120.0], [200.0, 240.0], [300.0, 320.0]])
    found = downstream(ahead, now_rps=80.0, factor=0.5, delay_s=2.5, step_s=10.0)
    assert found.tolist() == [[47.5, 55.0], [87.5, 105.0], [137.5, 150.0]]
    assert downstream(ahead, 80.0, 0.5, 10.0, 10.0)[:, 0].tolist() == [40, 50, 100]
    assert downstream(ahead, 80.0, 0.5, 45.0, 10.0)[:, 0].tolist() == [40, 40, 40]
    assert downstream(ahead, None, 1.0, 10.0, 10.0).tolist() == [[100, 120], [100, 120], [200, 240]]
    assert downstream(ahead, 80.0, 0.5, 0.0, 10.0).tolist() == (ahead / 2).tolist()


def test_what_reaches_each_query_of_the_records_of_the_source():
    job = adverts()
    found = reaching(job, placed(job, "parse views project", "join count", latency_s=1.5))
    assert found == {0: (600.0, {0: 600.0}, 0.0), 1: (pytest.approx(198.0), {0: pytest.approx(198.0)}, 1.5)}
    measure = Measure(job, rates_of(job))
    assert measure.wiring((("parse", "views", "project"), ("join", "count"))).loads[1] > 0
