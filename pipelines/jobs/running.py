"""How a managed job runs: session, query, progress log, agent, and a clean stop on SIGTERM."""

from __future__ import annotations

import argparse
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from configs.contract import Contract, load_contract
from configs.errors import CorrectableError
from configs.settings import Settings, load
from pipelines.jobs.apart import Apart, read_apart
from pipelines.jobs.launch import TOPICS, Launch, Replay, fix_first_offsets, refuse_order, replay_if_possible
from pipelines.jobs.progress_log import LOGGED_BYTES, ProgressLog, listener_of
from pipelines.jobs.restarts.configured import choose_configuration, note_run, set_configuration
from pipelines.jobs.restarts.same_topics import refuse_other_topics
from pipelines.jobs.restarts.snapshots import set_snapshots
from pipelines.kafka.clocks import wait_while_behind
from pipelines.kafka.signing import Signer
from pipelines.signals import event_of_signals
from pipelines.spark.checkpoint.repair import remedy_of
from pipelines.spark.event_log import trim_event_logs
from pipelines.spark.session import cluster_session
from pipelines.spark.wall_clock import jvm_clock
from pipelines.stack.state import with_stack_addresses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


TRIMMED_EVERY_S = 300.0
"""Between two looks at the size of a job's event log; meanwhile some parts may be written."""


def run_job(
    job: str, start_query: Callable[[Launch], StreamingQuery], argv: list[str] | None = None,
    topics: Sequence[str] = TOPICS, room: str = "",
    replay: Replay | None = None, merges: bool = False, keyed: bool = False,
    apart: Apart | None = None,
) -> int:  # fmt: skip
    """Run a managed job from the command line until SIGTERM or ctrl-C; only in the main thread (it sets handlers).

    Leaves in the run folder: `<job>.start.json` and `<job>.topics.json` (where it began), `<job>.progress.jsonl` (the
    newest progresses of the query), `<job>.json` (totals so far), `eventlog/` (its newest parts), and
    `<job>.checkpoint`, from which the same command goes on.

    Args:
        job: name of the job and of its contract (YAML of latency target and executor bounds).
        start_query: builds and starts its query.
        argv: arguments; default: those of the process.
        topics: that it reads or writes, whose ends are where the run begins.
        room: folder of its module below `pipelines.jobs`, and of its contract below the others, where the autoscaler
            does not look.
        replay: of its running query, how ranges of it are read again beside it; None: orders of replays are refused.
        merges: whether its results are merged into a Delta table, so that live and gap can meet after an outage.
        keyed: whether each of its results replaces the one before of the same key, so that batches may be cut otherwise
            where a damaged checkpoint is repaired.
        apart: how ranges of it are read again in an application of their own, by `--replays`; None: they are not.

    Returns:
        0 after a clean stop; 1 if the query failed, or if settings, broker, Java or jars are wrong, which stderr says.

    Raises:
        SystemExit: wrong arguments (status 2) or `--help`.
        ValueError, tidecast.spark.cluster.ClusterError: the agent cannot be attached (`tidecast.agent.attach`).
        OSError: the run folder cannot be written.
        Exception: whatever `start_query` raises.
    """
    args = _parse(".".join(filter(None, ("pipelines.jobs", room, job))), argv)
    stop = event_of_signals()
    try:
        settings = with_stack_addresses(load())
        Signer.of(settings.kafka).check_file()
        contract = load_contract(job, settings.contracts_dir / room)
        if args.replays is not None:
            return read_apart(job, apart, args.replays, settings, contract, args.run_dir, stop.is_set, topics)
        if args.no_agent:  # Spark's own allocation manager would scale, and nobody would say so
            least = contract.executors.model_copy(update={"max": contract.executors.min})
            contract = contract.model_copy(update={"executors": least})
        args.run_dir.mkdir(parents=True, exist_ok=True)
        refuse_order(contract, merges)
        refuse_other_topics(settings.kafka, args.run_dir, job, topics, args.run_dir / f"{job}.checkpoint")
        start = fix_first_offsets(settings, args.run_dir, job, topics)
        log_dir = args.run_dir / "eventlog"
        spark = cluster_session(f"tidecast {job}", settings, contract, log_dir, args.stock_starts, delta=merges)
    except CorrectableError as error:
        print(error, file=sys.stderr)
        return 1
    log = ProgressLog(args.run_dir, job, spark.sparkContext, LOGGED_BYTES)
    spark.streams.addListener(listener_of(log))
    launch = Launch(job, spark, settings, args.run_dir, start, contract)
    print(f"{job}: {set_snapshots(spark, args.run_dir, job, launch.recovery)}", flush=True)
    replay = replay_if_possible(replay, spark, job)
    try:
        query, agent = _run(launch, contract, start_query, replay, stop, acts=not args.no_agent)
    except CorrectableError as error:
        print(error, file=sys.stderr)
        spark.stop()
        return 1
    status = finish_query(spark, query, agent, log)
    # A job whose results are merged begins a checkpoint with each outage, and its sink knows batches by their numbers.
    if status and not merges and (remedy := remedy_of(launch.checkpoint, keyed)):
        print(remedy, file=sys.stderr)
    return status


def _parse(module: str, argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description="Run a managed job.")
    parser.add_argument("--run-dir", type=Path, required=True, help="folder for checkpoint, progress and event log")
    alone = "run without Tidecast's agent, with the least number of executors"
    parser.add_argument("--no-agent", action="store_true", help=alone)
    stock = "start executors as stock Spark does: no class archive, Spark's own worker daemon"
    parser.add_argument("--stock-starts", action="store_true", help=stock)
    own = "read the ranges that are ordered apart from its live query, with so many executors, and end"
    parser.add_argument("--replays", type=int, metavar="EXECUTORS", help=own)
    return parser.parse_args(argv)


def _run(
    launch: Launch, contract: Contract, start_query: Callable[[Launch], StreamingQuery],
    replay: Replay | None, stop: threading.Event, acts: bool,
) -> tuple[StreamingQuery, Any]:  # fmt: skip
    """Run the query, if it `acts` with its agent, until it ends or a signal comes; return both, None for no agent.

    Where the clock is set back it is started again: Spark would sleep until its next micro-batch's wall time has come.
    """
    clock = jvm_clock(launch.spark)
    while True:
        query, agent = _started(launch, contract, start_query), None
        again = None if replay is None else replay(launch, query)
        if acts:
            agent = attach_agent(query, launch.job, launch.settings, contract, mode="act", clock=None, replay=again)
        by_s = _await_end(query, stop, launch.run_dir / "eventlog", clock.set_back_s)
        if not by_s:
            return query, agent
        print(f"{launch.job}: the clock was set back by {by_s:.0f} s; the query is started again", flush=True)
        if agent is not None:
            agent.stop()
        query.stop()
        # What was said to the agent before, the next one would refuse for good. All of it: what is newest on a topic
        # may have come since, by the same clock.
        wait_while_behind(launch.settings.kafka, clock.now_s, stop, "control", None)
        if stop.is_set():
            return query, agent


def _started(launch: Launch, contract: Contract, start_query: Callable[[Launch], StreamingQuery]) -> StreamingQuery:
    """The query, started under the configuration that is its turn, if its contract states some."""
    chosen = choose_configuration(launch.run_dir, launch.job, contract, launch.settings.job.trigger)
    if chosen is None:
        return start_query(launch)
    print(f"{launch.job}: {chosen.text}", flush=True)
    own = launch.settings.job.model_copy(update=chosen.trigger)
    taken = False
    try:
        set_configuration(launch.spark, chosen)
        taken = True
        query = start_query(replace(launch, settings=launch.settings.model_copy(update={"job": own})))
    except Exception as error:
        # One that Spark refuses has had its turn, or each restart would take it again. What people have to correct, as
        # a broker that is away, is no fault of it.
        if not (taken and isinstance(error, CorrectableError)):
            note_run(launch.run_dir, launch.job, f"not started {uuid4()}", chosen)
        raise
    note_run(launch.run_dir, launch.job, str(query.runId), chosen)
    return query


def _await_end(
    query: StreamingQuery, stop: threading.Event, log_dir: Path, set_back_s: Callable[[], float]
) -> float:  # fmt: skip
    """Wait until the query ends, a signal comes or the clock is set back; return by how much that was, seconds, or 0.

    Meanwhile its event log is kept from growing without end.
    """
    trimmed_at = -math.inf
    while query.isActive and not stop.wait(0.2):
        if by_s := set_back_s():
            return by_s
        if time.monotonic() - trimmed_at < TRIMMED_EVERY_S:
            continue
        trimmed_at = time.monotonic()
        try:
            trim_event_logs(log_dir)
        except OSError as error:  # it is no reason to end a query
            print(f"The event log is not trimmed: {error}", file=sys.stderr, flush=True)
    return 0.0


def attach_agent(query: StreamingQuery, job: str, settings: Settings, contract: Contract, **how: Any) -> Any:
    """Attach the agent to a query of a managed job, and return it.

    This process is ours: while a broker is away its client says so often, and the agent once.

    Args:
        query: that runs.
        job: its name.
        settings: with the broker.
        contract: of the job: bounds and cores of its executors.
        **how: further arguments of `tidecast.agent.attach`, as `mode`.
    """
    from tidecast import attach

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    bounds, kafka = contract.executors, settings.kafka
    return attach(
        query, job=job, bootstrap=kafka.bootstrap, security=kafka.security, prefix=kafka.prefix,
        executors=(bounds.min, bounds.max), cores_per_executor=bounds.cores,
        signing_key=Signer.of(kafka).keys_of(job), **how,
    )  # fmt: skip


def finish_query(spark: SparkSession, query: StreamingQuery, agent: Any, log: ProgressLog) -> int:
    """Stop agent (None: there is none), query and session, in this order; return 0, or 1 if the query had failed.

    A JVM that went first (a signal to the whole group) is no fault.
    """
    failure = None
    with suppress(Exception):
        failure = query.exception()
    if agent is not None:
        agent.stop()
    for end in (query.stop, spark.stop):
        with suppress(Exception):
            end()
    if failure is not None:
        done = f"{log.totals['batches']} batches with {log.totals['rows']} records"
        print(
            f"{log.job}: its query has failed after {done}. Started again it goes on from its checkpoint. {failure}",
            file=sys.stderr,
        )
        return 1
    return 0
