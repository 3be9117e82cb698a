"""Placements beside which a plan is held, and the cases of the bench."""

import pytest

from configs.topology import load_topology
from models.placement.fusion.parts import illegal_because
from models.placement.plan.blocks import block_of
from models.placement.plan.choose import choose_placement
from models.placement.plan.compared import CHOSEN, EACH, ONE, compared_placements
from models.placement.plan.measured import Block, Placement, greatest_factor
from models.placement.rates import fusion_task, rates_of
from pipelines.bench.placement.real.cases import FED, case_files
from pipelines.bench.placement.real.measure import distinct
from pipelines.placement.code import load_code

CASES = {name: load_topology(name, file.parent) for name, file in case_files().items()}


@pytest.mark.parametrize("name", CASES)
def test_compared_placements_may_be_run_and_take_no_more_than_there_is(name):
    topology = CASES[name]
    found = compared_placements(topology, 3, seed=0)
    assert found[CHOSEN] == choose_placement(topology).placement
    assert 1 <= sum(one.startswith("drawn") for one in found) <= 3
    task = fusion_task(topology, rates_of(topology))
    for made in found.values():
        place = block_of(tuple(block.operators for block in made.blocks))
        assert not illegal_because(task, [place[one] for one in topology.operators])
        for own, cluster in topology.clusters.items():
            assert sum(block.executors for block in made.blocks if block.cluster == own) <= cluster.cores
        assert all(
            topology.operators[one].cluster in (None, block.cluster) for block in made.blocks for one in block.operators
        )
    assert found == compared_placements(topology, 3, seed=0)


def test_one_query_is_compared_where_it_may_be_and_has_room():
    one = {name: ONE in compared_placements(topology, 0, seed=0) for name, topology in CASES.items()}
    assert one == {name: name.endswith("light") for name in CASES}
    light = CASES["adverts_light"]
    assert compared_placements(light, 3, seed=0) != compared_placements(light, 3, seed=1)
    each = compared_placements(CASES["words_light"], 0, seed=0)[EACH]
    assert [len(block.operators) for block in each.blocks] == [1] * 3


def test_a_placement_with_two_names_is_run_once():
    found = compared_placements(CASES["adverts_light"], 2, seed=0)
    runs = distinct(found)
    assert sorted(name for names, _ in runs for name in names) == sorted(found)
    assert len({one for _, one in runs}) == len(runs)


def test_every_case_is_fed_and_all_of_its_results_are_counted():
    for topology in CASES.values():
        (source,) = topology.sources
        sinks = {*topology.operators} - {one for own in topology.operators.values() for one in own.of}
        assert sinks <= {*FED[source].keys_of} and load_code(topology)


def test_a_job_takes_as_much_as_the_query_that_falls_behind_first():
    topology = CASES["adverts_light"].model_copy(update={"trigger_s": 2.0, "overhead_s": 1.0})
    first, second = Block(("parse",), "east", 2, 0.8, 1.0), Block(("views",), "west", 1, 0.6, 1.0)
    made = Placement((first, second), 1.0, 1.0, True)
    assert greatest_factor(topology, made) == pytest.approx(10 / 11 / 0.6)  # the other one: 10 / 11 / 0.4
    two = {name: one.model_copy(update={"executor_cores": 2}) for name, one in topology.clusters.items()}
    larger = topology.model_copy(update={"clusters": two})
    assert greatest_factor(larger, made) == pytest.approx(10 / 11 / 0.3)
