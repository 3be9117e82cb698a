"""Blocks of a job joined by a topic, on real Spark and a real broker: what they come to, whatever is run again."""

import shutil

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.spark import spark_options
from pipelines.kafka.topics import create_topic
from pipelines.placement.code import load_code, record_schemas
from pipelines.placement.frames import block_frame
from pipelines.placement.topic_sink import BlockSink, once
from tests.fakes.adverts import advert_events, counted_adverts, encode_event, true_adverts
from tests.fakes.committed import committed_records

pytestmark = pytest.mark.integration

PARTS = 2
"""Of what a block sends: each is a task and a transaction in every batch."""


@pytest.fixture
def two_blocks(one_partition, empty_topics):
    """The adverts job cut before its join: functions that run a block over what is there, and that send events."""
    topology = load_topology("adverts", ROOT / "configs" / "topologies")
    placement = Placement(tuple(
        Block(tuple(names.split()), "east", 1, 1.0, 1.0) for names in ("parse views project", "join count")
    ), 1.0, 1.0, True)  # fmt: skip
    blocks, code = applications_of(topology, placement), load_code(topology)
    schemas = record_schemas(one_partition, topology, code)
    between = empty_topics.model_copy(update={"event_partitions": PARTS})
    for block in blocks:
        for topic in block.writes.values():
            create_topic(between, topic)

    def read(topic):
        options = {
            **spark_options(empty_topics), "subscribe": empty_topics.topic(topic), "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed", "maxOffsetsPerTrigger": "400", "kafka.fetch.max.wait.ms": "20",
        }  # fmt: skip
        return one_partition.readStream.format("kafka").options(**options).load()

    def run(number, checkpoint, epoch=1):
        block = blocks[number]
        sink = BlockSink(block.name, epoch, next(iter(block.writes.values())), PARTS)
        frame = block_frame(block, topology, code, schemas, read)
        send = once(empty_topics.model_dump(), sink)
        writer = frame.writeStream.foreachBatch(send).outputMode("update").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        assert query.awaitTermination(120)
        assert query.exception() is None

    def send(events):
        publisher = Publisher(empty_topics)
        for event in events:
            publisher.send_bytes("events", str(event.ad).encode(), encode_event(event))
        publisher.close()

    return run, send, empty_topics


def forget_last_commit(checkpoint):
    """The newest batch was sent, and Spark has not heard of it: it is run again."""
    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def test_two_blocks_count_every_event_once_whatever_is_run_again_and_one_that_was_moved_is_shut_out(
    two_blocks, tmp_path
):
    run, send, kafka = two_blocks
    events = advert_events(500)
    send(events)
    run(0, tmp_path / "east")
    run(1, tmp_path / "second")
    assert counted_adverts(kafka) == true_adverts(events)
    written = sorted(committed_records(kafka, "adverts.count"))
    forget_last_commit(tmp_path / "second")
    run(1, tmp_path / "second")
    assert sorted(committed_records(kafka, "adverts.count")) == written
    shutil.copytree(tmp_path / "east", tmp_path / "west")
    forget_last_commit(tmp_path / "west")
    more = advert_events(300, first=500)
    send(more)
    run(0, tmp_path / "west", epoch=2)
    with pytest.raises(Exception, match="written by epoch 2, this is 1"):
        run(0, tmp_path / "east", epoch=1)
    run(1, tmp_path / "second")
    assert counted_adverts(kafka) == true_adverts([*events, *more])


def test_code_that_does_not_fit_is_told(spark):
    topology = load_topology("adverts", ROOT / "configs" / "topologies")
    for code, what in ((None, "names no code"), ("nowhere.module", "cannot be imported"),
                       ("pipelines.jobs.windows", "SOURCES has no 'events'")):  # fmt: skip
        with pytest.raises(SettingsError, match=what):
            load_code(topology.model_copy(update={"code": code}))
    code = load_code(topology)
    broken = code._replace(operators={**code.operators, "join": lambda frame: frame.select("nothing")})
    with pytest.raises(SettingsError, match="operator 'join' fails on no records"):
        record_schemas(spark, topology, broken)
