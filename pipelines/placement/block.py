"""A block as a Spark application: `python -m pipelines.placement.block JOB_FOLDER NAME`, until SIGTERM or ctrl-C.

Runs the newest epoch of the block, on the master that TIDECAST_SPARK__MASTER names.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.errors import CorrectableError
from configs.settings import Settings, load
from configs.topology import Topology
from models.placement.plan.applications import BlockApplication, applications_of
from models.placement.plan.measured import CATCH_UP, Measure, Placement
from models.placement.plan.shares import most_executors
from models.placement.rates import rates_of
from pipelines.jobs.launch import Launch, read_first_offsets
from pipelines.jobs.progress_log import ProgressLog, listener_of
from pipelines.jobs.running import attach_agent, finish_query, stop_on_signals
from pipelines.kafka.signing import Signer
from pipelines.placement.code import JobCode, load_code, record_schemas
from pipelines.placement.frames import block_frame
from pipelines.placement.job_folder import BlockEpoch, JobFolder
from pipelines.placement.scaled.contracts import begun_with, contract_file, contract_of
from pipelines.placement.topic_sink import BlockSink, once
from pipelines.spark.session import cluster_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S, ALL_THERE_S = 0.2, 15.0
"""Seconds between two looks, and after the first work for which the other executors are waited for."""
LOGGED_BYTES = 16 << 20
"""Of an epoch's progresses, the newest, and as much before them: an hour or more of each at a trigger of 1 s."""
_WAITS = ("Waiting for data to arrive", "Waiting for next trigger")


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
    stop, spark = stop_on_signals(), None
    try:
        folder = JobFolder(args.job)
        topology, epoch = folder.topology(), folder.newest(args.name)
        if epoch is None:
            parser.error(f"{args.name}: no such block in {args.job}")
        settings, placement, code = load(), folder.wanted(), load_code(topology)
        Signer.of(settings.kafka).check_file()
        contract, scaled = contract_of(settings, topology, epoch.block, partial(print, file=sys.stderr))
        begun = begun_with(contract, epoch.block.executors, _room(settings, topology, placement, epoch.block))
        settings = block_settings(settings, topology, placement, epoch.block, begun.executors.max)
        # Its agent comes late; until then Spark would take executors that a pool has for other queries.
        spark = cluster_session(f"tidecast {args.name}", settings, begun, grows=False)
        start = read_first_offsets(folder.path, topology.name)
        launch = Launch(args.name, spark, settings, epoch.folder, start)
        log = ProgressLog(epoch.folder, args.name, spark.sparkContext, LOGGED_BYTES)
        spark.streams.addListener(listener_of(log))
        query = start_block(launch, topology, code, epoch, folder.id)
    except CorrectableError as error:
        print(error, file=sys.stderr)
        if spark is not None:
            spark.stop()
        return 1
    epoch.note_scaled(scaled)
    attach = partial(attach_agent, query, args.name, settings, contract, mode="act" if scaled else "observe")
    agent = _until(stop, spark, query, epoch, partial(_attach_and_probe, attach, launch, epoch))
    return finish_query(spark, query, agent, log)


def _room(settings: Settings, topology: Topology, placement: Placement, block: BlockApplication) -> int:
    """Executors that a block's cluster has for it, beside one of each block there that is scaled, and all of others."""
    names = [one.name for one in applications_of(topology, placement)]

    def kept(at: int) -> int:
        return 1 if contract_file(settings, names[at]).is_file() else placement.blocks[at].executors

    room = most_executors(topology, placement, names.index(block.name), block.cluster, kept)
    return max(room, block.executors)


def block_settings(
    settings: Settings, topology: Topology, placement: Placement, block: BlockApplication, executors: int
) -> Settings:
    """Return the settings of a block's application: trigger, partitions and size of its micro-batches.

    Args:
        settings: of whoever runs it.
        topology: of the job.
        placement: of its operators.
        block: the block, one of these.
        executors: that it may have, by whose work a full batch is measured.
    """
    blocks = tuple(one.operators for one in placement.blocks)
    cores = executors * topology.clusters[block.cluster].executor_cores
    able_rps = Measure(topology, rates_of(topology)).service_rps(blocks, blocks.index(block.operators), cores)
    marks = topology.partitions * len(block.reads)  # of transactions: they take an offset each, and are no records
    job = {
        "trigger": f"{topology.trigger_s:g} seconds", "state_partitions": topology.partitions,
        "max_offsets_per_trigger": math.ceil(CATCH_UP * (topology.trigger_s * able_rps + marks)),
    }  # fmt: skip
    return settings.model_copy(update={"job": settings.job.model_copy(update=job)})


def start_block(launch: Launch, topology: Topology, code: JobCode, epoch: BlockEpoch, job_id: str) -> StreamingQuery:
    """Shut out whoever ran the block before, and start its query.

    Args:
        launch: of the block.
        topology: of the job.
        code: of its operators.
        epoch: that begins, or goes on.
        job_id: of the job: the numbers of sent batches are kept for each.

    Raises:
        SupersededError: it runs elsewhere with a higher epoch.
        BrokerError, SettingsError: the broker refuses or does not answer; the code fails.
    """
    block, kafka = epoch.block, launch.settings.kafka
    schemas = record_schemas(launch.spark, topology, code)
    marks = next(iter(block.writes.values()))
    sink = BlockSink(f"{block.name}.{job_id}", epoch.number, marks, topology.partitions)
    sink.claim(kafka)
    frame = block_frame(block, topology, code, schemas, partial(_committed, launch))
    return (
        frame.writeStream.queryName(block.name).outputMode("update")
        .foreachBatch(once(kafka.without_signing_keys(), sink))
        .option("checkpointLocation", str(launch.checkpoint)).trigger(processingTime=launch.settings.job.trigger)
        .start()
    )  # fmt: skip


def _committed(launch: Launch, topic: str) -> DataFrame:
    """A topic as a stream, without what writers that failed have left there."""
    options = {**launch.source(topic), "kafka.isolation.level": "read_committed"}
    return launch.spark.readStream.format("kafka").options(**options).load()


def _until(
    stop: threading.Event, spark: SparkSession, query: StreamingQuery, epoch: BlockEpoch, attach: Callable[[], Any]
) -> Any:
    """Wait for a signal or the end of the query; return its agent.

    Notes when executors have worked, or are there with nothing to do. The agent, which takes over those that are there,
    is attached when all are that the block was placed with, or after a while.
    """
    worked_s, agent = None, None
    while query.isActive and not stop.wait(LOOK_S):
        if worked_s is None and _works(spark, query):
            epoch.note_work(os.getpid())
            worked_s = time.monotonic()
        if agent is None and worked_s is not None:
            late = time.monotonic() - worked_s > ALL_THERE_S
            if late or _registered(spark) >= epoch.block.executors:
                agent = attach()
    return agent


def _attach_and_probe(attach: Callable[[], Any], launch: Launch, epoch: BlockEpoch) -> Any:
    """Attach the agent and return it; meanwhile note how far the broker is from an executor."""
    threading.Thread(target=_probe, args=(launch, epoch), name="probe", daemon=True).start()
    return attach()


def _probe(launch: Launch, epoch: BlockEpoch) -> None:
    """Note how far the broker is from an executor; without that all goes on."""
    kafka = launch.settings.kafka.without_signing_keys()

    def probe(_: int) -> float | str:
        from configs.sections import Kafka
        from pipelines.kafka.broker import BrokerError
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


def _registered(spark: SparkSession) -> int:
    there: int = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return there - 1  # the driver is one of them


def _works(spark: SparkSession, query: StreamingQuery) -> bool:
    if any("addBatch" in progress["durationMs"] for progress in query.recentProgress):
        return True
    status = query.status
    return _registered(spark) > 0 and status["message"] in _WAITS and not status["isDataAvailable"]


if __name__ == "__main__":
    sys.exit(run_block())
