"""What a block's application is given: its settings, its contract, and where the marks of its batches are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.placement.block import block_contract, block_settings
from pipelines.placement.topic_sink import BlockSink

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 1.0, 1.0), Block(("join", "count"), "west", 3, 1.0, 1.0),
), 3.0, 2.0, True)  # fmt: skip


def test_a_block_takes_five_triggers_of_records_and_of_marks_at_most():
    first, second = applications_of(ADVERTS, TWO)
    job = block_settings(load(), ADVERTS, first).job
    assert (job.trigger, job.state_partitions, job.max_offsets_per_trigger) == ("1 seconds", 12, 5 * (600 + 12))
    assert block_settings(load(), ADVERTS, second).job.max_offsets_per_trigger == 5 * (198 + 12)
    slow = ADVERTS.model_copy(update={"trigger_s": 0.5})
    assert block_settings(load(), slow, second).job.trigger == "0.5 seconds"


def test_a_block_has_as_many_executors_as_its_placement_says():
    contract = block_contract(ADVERTS, applications_of(ADVERTS, TWO)[1])
    assert (contract.job, contract.executors.min, contract.executors.max) == ("adverts.join", 3, 3)
    assert contract.latency_target_s == ADVERTS.target_s


@given(st.integers(1, 40), st.integers(1, 4))
def test_each_part_of_a_batch_has_a_place_of_its_own(partitions, topics):
    sink = BlockSink("job.block.1a2b", 1, "job.out", partitions, partitions * topics)
    places = [sink.place(part) for part in range(sink.parts)]
    assert len(set(places)) == sink.parts and all(partition < partitions for _, partition in places)
    with pytest.raises(ValueError, match="at most"):
        sink.place(sink.parts)
