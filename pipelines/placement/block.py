"""A block as a Spark application: `python -m pipelines.placement.block JOB_FOLDER NAME`, until SIGTERM or ctrl-C.

Runs the newest epoch of the block, on the master that TIDECAST_SPARK__MASTER names.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.errors import CorrectableError
from configs.sections import Kafka
from configs.settings import Settings, load
from configs.topology import Topology
from models.placement.plan.applications import BlockApplication, applications_of, batch_limits
from models.placement.plan.measured import Placement
from models.placement.plan.shares import most_executors
from pipelines.jobs.launch import Launch, first_offsets
from pipelines.jobs.progress_log import ProgressLog, listener_of
from pipelines.jobs.restarts.same_topics import refuse_other_topics
from pipelines.jobs.running import attach_agent, finish_query
from pipelines.kafka.signing import Signer
from pipelines.placement.begun import follow_query
from pipelines.placement.code import JobCode, load_code, record_schemas
from pipelines.placement.frames import block_frame
from pipelines.placement.job_folder import JobFolder, checkpoint_of
from pipelines.placement.restored import claim_sink
from pipelines.placement.scaled.contracts import contract_file, contract_of, starting_contract
from pipelines.placement.topic_sink import BlockSink, once
from pipelines.placement.watched_block import BlockEpoch
from pipelines.signals import event_of_signals
from pipelines.spark.session import cluster_session
from tidecast.spark.admission import Admission, AdmissionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

LOGGED_BYTES = 16 << 20
"""Of an epoch's progresses, the newest, and as much before them: an hour or more of each at a trigger of 1 s."""


def run_block(argv: list[str] | None = None) -> int:
    """Run a block until a signal; only in the main thread.

    Leaves in the epoch's folder: its checkpoint, the newest progresses of its query, and `works` once it works.

    Returns:
        0 after a clean stop; 1 if the query failed, or if settings, broker, code, Java or jars are wrong, which stderr
        says.
    """
    parser = argparse.ArgumentParser(prog="python -m pipelines.placement.block", description="Run a block of a job.")
    parser.add_argument("job", type=Path, help="folder of the job")
    parser.add_argument("name", help="name of the block")
    args = parser.parse_args(argv)
    stop, spark = event_of_signals(), None
    try:
        folder = JobFolder(args.job)
        topology, epoch = folder.topology(), folder.newest(args.name)
        if epoch is None:
            parser.error(f"{args.name}: no such block in {args.job}")
        settings, placement, code = load(), folder.wanted(), load_code(topology)
        Signer.of(settings.kafka).check_file()
        topics = [*epoch.block.reads.values(), *epoch.block.writes.values()]
        up = f"tidecast job up {topology.name}"
        refuse_other_topics(settings.kafka, folder.path, args.name, topics, checkpoint_of(epoch), up)
        contract, scaled = contract_of(settings, topology, epoch.block, partial(print, file=sys.stderr))
        begun = starting_contract(contract, epoch.block.executors, _room(settings, topology, placement, epoch.block))
        work = folder.work()
        first, most = (
            batch_limits(topology, placement, epoch.block, many, work)
            for many in (begun.executors.min, begun.executors.max)
        )
        settings = block_settings(settings, topology)
        # Its agent comes late; until then Spark would take executors that a pool has for other queries.
        spark = cluster_session(f"tidecast {args.name}", settings, begun, grows=False)
        start = first_offsets(settings, folder.path, topology.name, list(epoch.block.reads.values()))
        launch = Launch(args.name, spark, settings, epoch.folder, start)
        log = ProgressLog(epoch.folder, args.name, spark.sparkContext, LOGGED_BYTES)
        spark.streams.addListener(listener_of(log))
        query = start_block(launch, topology, code, epoch, folder, first)
    except CorrectableError as error:
        print(error, file=sys.stderr)
        if spark is not None:
            spark.stop()
        return 1
    epoch.note_scaled(scaled)
    attach = partial(attach_agent, query, args.name, settings, contract, mode="act" if scaled else "observe")
    ready = partial(_all_there, query, launch, epoch, most, attach)
    agent = follow_query(stop, spark, query, epoch, ready)
    return finish_query(spark, query, agent, log)


def _room(settings: Settings, topology: Topology, placement: Placement, block: BlockApplication) -> int:
    """Executors that a block's cluster has for it, beside one of each block there that is scaled, and all of others."""
    names = [one.name for one in applications_of(topology, placement)]

    def kept(at: int) -> int:
        return 1 if contract_file(settings, names[at]).is_file() else placement.blocks[at].executors

    room = most_executors(topology, placement, names.index(block.name), block.cluster, kept)
    return max(room, block.executors)


def block_settings(settings: Settings, topology: Topology) -> Settings:
    """Return the settings of a block's application: trigger and partitions of its state.

    Args:
        settings: of whoever runs it.
        topology: of the job.
    """
    job = {"trigger": f"{topology.trigger_s:g} seconds", "state_partitions": topology.partitions}
    return settings.model_copy(update={"job": settings.job.model_copy(update=job)})


def admit_batches(query: StreamingQuery, kafka: Kafka, limits: Mapping[str, int]) -> None:
    """Let a query that runs take so many offsets of each topic in a micro-batch from now on.

    Raises:
        AdmissionError: Spark does not let its limits be set.
    """
    admission = Admission(query)
    named = {f"[{kafka.topic(topic)}]": most for topic, most in limits.items()}
    rows = {source: most for source in admission.sources() for name, most in named.items() if name in source}
    admission.admit_each(rows)


def start_block(
    launch: Launch, topology: Topology, code: JobCode, epoch: BlockEpoch, folder: JobFolder, limits: Mapping[str, int]
) -> StreamingQuery:
    """Shut out whoever ran the block before, and start its query.

    Args:
        launch: of the block.
        topology: of the job.
        code: of its operators.
        epoch: that begins, or goes on.
        folder: of the job: the numbers of sent batches are kept for each.
        limits: of its first micro-batches, in offsets of each topic.

    Raises:
        RestoredError, SupersededError: as `claim_sink`.
        BrokerError, SettingsError: the broker refuses or does not answer; the code fails.
    """
    block, kafka = epoch.block, launch.settings.kafka
    schemas = record_schemas(launch.spark, topology, code)
    marks = next(iter(block.writes.values()))
    sink = BlockSink(f"{block.name}.{folder.id}", epoch.number, marks, topology.partitions)
    claim_sink(sink, kafka, folder, epoch)
    frame = block_frame(block, topology, code, schemas, partial(_committed, launch, limits))
    return (
        frame.writeStream.queryName(block.name).outputMode("update")
        .foreachBatch(once(kafka.without_signing_keys(), sink))
        .option("checkpointLocation", f"file://{launch.checkpoint}")  # HADOOP_CONF_DIR may name another file system
        .trigger(processingTime=launch.settings.job.trigger).start()
    )  # fmt: skip


def _committed(launch: Launch, limits: Mapping[str, int], topic: str) -> DataFrame:
    """A topic as a stream, without what writers that failed have left there."""
    own = {"maxOffsetsPerTrigger": str(limits[topic]), "kafka.isolation.level": "read_committed"}
    options = {**launch.source(topic), **own}
    return launch.spark.readStream.format("kafka").options(**options).load()


def _all_there(
    query: StreamingQuery, launch: Launch, epoch: BlockEpoch, limits: Mapping[str, int], attach: Callable[[], Any]
) -> Any:
    """Attach the agent and return it: with the executors that it may add, batches may become as large.

    Meanwhile it is noted how far the broker is from an executor.
    """
    try:
        admit_batches(query, launch.settings.kafka, limits)
    except AdmissionError as error:
        print(f"{epoch.block.name}: its batches stay as small as at first. {error}", file=sys.stderr)
    threading.Thread(target=_probe, args=(launch, epoch), name="probe", daemon=True).start()
    return attach()


def _probe(launch: Launch, epoch: BlockEpoch) -> None:
    """Note how far the broker is from an executor; without that all goes on."""
    kafka = launch.settings.kafka.without_signing_keys()

    def probe(_: int) -> float | str:
        from configs.sections import Kafka
        from pipelines.kafka.connection import BrokerError
        from pipelines.kafka.round_trip import round_trip_s

        try:
            return round_trip_s(Kafka(**kafka))
        except BrokerError as error:  # a task that fails is run again, on a core of the query's
            return str(error)

    try:
        found = launch.spark.sparkContext.parallelize([0], 1).map(probe).first()
        if not isinstance(found, str):
            epoch.note_round_trip(found)
            return
    except Exception as error:  # of Spark, or a disk that is full
        found = f"{error}"
    print(f"{epoch.block.name}: the way to the broker was not probed. {found}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(run_block())
