"""The streaming query as a server: it claims its epoch, gets every champion to the workers, and leaves for a later one.

One that starts claims once it has Spark, and begins at the checkpoint when the server before has left it.

For more jobs than the stream server's one process has time for: `serving.cores` tasks, on `serving.master` if one is
set.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from configs.settings import Settings
from pipelines.deployment import deployment_name
from pipelines.kafka.broker import read_records
from pipelines.kafka.claim import SERVING, Claim
from pipelines.kafka.clocks import wait_while_behind
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.registry import Registry
from pipelines.serve.contracted import ContractedJobs
from pipelines.serve.models.loader import AGAIN_S, ChampionSource, Loader
from pipelines.serve.models.ready import ReadyModel
from pipelines.serve.step.windows import RecentWindows
from pipelines.serve.stream.fleet_query import start_query
from pipelines.serve.stream.fleet_step import model_files, read_deployment, write_model_file
from pipelines.serve.stream.server import TAIL, needed_from, read_samples
from pipelines.signals import keep_sigterm_from_jvm, stop_on_signals
from pipelines.spark.checkpoint.lock import CheckpointLock
from pipelines.spark.checkpoint.operator_name import name_for_frames
from pipelines.spark.checkpoint.repair import remedy_of
from pipelines.spark.query_session import query_session, refuse_spread, spread_state
from pipelines.spark.wall_clock import jvm_clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_S = 60.0
"""Wall seconds: what waits on the topic when the query starts makes windows, and no forecasts."""
LOOK_S, QUIET_S = 0.2, 10.0
"""Seconds between two looks whether the server before has left; and without a micro-batch until it surely has."""
LEAVING = "a server with a later epoch has taken over; leaving"
KEPT_FILES = 2
"""Models of a job that are kept: the one in service, and the one before, in which a worker may still be."""


def serve_on_spark(settings: Settings, champions: Callable[[], ChampionSource] | None = None) -> None:
    """Serve forecasts by a streaming query until SIGTERM, ctrl-C, or until another server takes over.

    Missing topics are created. Models, offsets and state lie in `var/serving/STEP`, by seconds per window. Call it from
    the main thread.

    Args:
        settings: of the whole pipeline.
        champions: opens the source of models, in the loader's thread; by default the registry.

    Raises:
        SystemExit: the query failed; the message holds its error, and what helps.
        BrokerError: the broker does not answer at the start, or does not take the claim.
        JavaError, JarsError: Spark cannot start.
        SpreadError: the checkpoint is of another number of cores, and Spark cannot spread it; where that is sure from
            its files, nothing was claimed.
        OSError: a folder cannot be written, or the checkpoint not be locked.
        ValueError: not called from the main thread, or an unknown security option.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # else its client logs every refused connection
    serving, stop = settings.serving, threading.Event()
    folder = settings.var_dir / "serving" / f"{settings.training.step_s:g}"
    models, checkpoint = folder / "models", folder / "query"
    refuse_spread(checkpoint, serving.cores, "serving.cores")
    models.mkdir(parents=True, exist_ok=True)
    keep_sigterm_from_jvm()
    create_topics(settings.kafka)
    with stop_on_signals(stop), closing(Publisher(settings.kafka)) as publisher:
        windows = RecentWindows(settings.training.step_s)  # none: a model is begun on those that the workers have
        loader = Loader(windows, champions or (lambda: Registry(settings)), _contracted(settings), serving.alias_poll_s)
        loader.serving.update(_kept_models(models))
        loader.start()
        # Before the claim: while that waits for a cluster's executors, or where it fails, the server before goes on.
        spark = query_session("serving", settings, serving.cores, serving.master, python_state=True)

        with closing(loader):
            if not stop.is_set():
                lock = CheckpointLock(checkpoint)
                name = deployment_name(settings.var_dir)
                with closing(Claim(settings.kafka, publisher, SERVING, name)) as claim:
                    if has_come(lock, claim, stop):
                        _run_query(spark, settings, folder, loader, claim, stop)
                        name_for_frames(checkpoint)
                        lock.hand_over()
        spark.stop()


def _run_query(
    spark: SparkSession, settings: Settings, folder: Path, loader: Loader, claim: Claim, stop: threading.Event
) -> None:
    """Run the query, and put models in service, until a signal comes or a server with a later epoch.

    Raises:
        SystemExit: the query failed.
    """
    models, checkpoint = folder / "models", folder / "query"
    serving, step_s = settings.serving, settings.training.step_s
    _say(spread_state(spark, checkpoint, serving.cores, "serving.cores"))
    tail = read_samples(read_records(settings.kafka, "metrics", TAIL), _contracted(settings))
    since_s = needed_from(tail, step_s)
    start = partial(
        start_query, spark, settings, checkpoint, models, _contracted(settings), claim.epoch, since_s, OLDEST_S,
        serving.poll_s,
    )  # fmt: skip
    query, clock = start(), jvm_clock(spark)
    _say([f"epoch {claim.epoch}, process {os.getpid()}, {serving.cores} cores"])
    failed, again_s = list[str](), 0.0
    while not stop.wait(serving.poll_s):
        if loader.ready and time.monotonic() >= again_s:
            before, failed = failed, put_ready_in_service(models, loader.ready, step_s)
            _say([line for line in failed if line not in before])  # once, not every half minute
            again_s = time.monotonic() + AGAIN_S if failed else 0.0
        if claim.superseded():
            _say([LEAVING])
            break
        if by_s := clock.set_back_s():  # Spark would wait for the next micro-batch's wall time
            _say([f"the clock was set back by {by_s:.0f} s; the query is started again"])
            query.stop()
            wait_while_behind(settings.kafka, clock.now_s, stop)
            query = start()
        if not query.isActive:
            raise SystemExit(f"the query of serving failed: {query.exception()}\n{remedy_of(checkpoint)}")
    query.stop()


def _contracted(settings: Settings) -> ContractedJobs:
    return ContractedJobs(settings.contracts_dir, settings.serving.alias_poll_s)


def has_come(lock: CheckpointLock, claim: Claim, stop: threading.Event) -> bool:
    """Wait until the server before has left the checkpoint; False where this one must leave before that.

    One that handed over is believed. Of one that was killed, or takes no lock, as those of earlier releases, no
    micro-batch must have ended for QUIET_S (10 s).

    Args:
        lock: of the checkpoint, asked for before the claim.
        claim: by which the other server leaves, and this one for a later one.
        stop: ends the wait.
    """
    told = False
    while not (lock.take() and (lock.handed_over or not lock.written_lately(QUIET_S))):
        if not told:
            _say(["waiting until the server before has left the checkpoint"])
            told = True
        if claim.superseded():
            _say([LEAVING])
            return False
        if stop.wait(LOOK_S):
            return False
    return True


def put_ready_in_service(models: Path, ready: deque[ReadyModel], step_s: float) -> list[str]:
    """Put models in service that are ready, see `put_in_service`; one that cannot be written waits on in `ready`.

    Unless a later one of its job waits there: that takes its place.

    Returns:
        Of each that cannot be written which, and why.
    """
    failed, waiting = list[str](), dict[str, ReadyModel]()
    for _ in range(len(ready)):
        one = ready.popleft()
        waiting.pop(one.job, None)
        try:
            put_in_service(models, one, step_s)
        except OSError as error:  # as of a full disk: what serves goes on
            why = f"cannot be put in service: {error}; trying again every {AGAIN_S:g} s"
            failed.append(f"{one.job}: version {one.version} {why}")
            waiting[one.job] = one
    ready.extendleft(waiting.values())  # before what has come meanwhile, which is later
    return failed


def put_in_service(models: Path, ready: ReadyModel, step_s: float) -> None:
    """Write a model where the workers look for it with every micro-batch, and say so.

    It serves from the next record of its job on. Older models of the job are removed, all but the one before.

    Raises:
        OSError: a file cannot be written.
    """
    files = model_files(models, ready.job)
    number = 1 + (int(files[-1].stem) if files else 0)
    write_model_file(models, ready.job, ready.deployment(number, 0, step_s), dict(ready.model_set.members))
    for old in files[: 1 - KEPT_FILES]:
        old.unlink(missing_ok=True)
    print(f"serving {ready.job}: champion is version {ready.version} ({ready.model_set.forecaster.kind})", flush=True)


def _kept_models(models: Path) -> dict[str, tuple[str, tuple[str, str, str]]]:
    """Version and digests of what served each job when the last server ended, without what cannot be read."""
    found = {}
    for folder in models.iterdir():
        with suppress(IndexError, ValueError, OSError):
            newest = model_files(models, folder.name)[-1]
            kept = read_deployment(newest)
            found[folder.name] = kept.model_version, kept.digests
    return found


def _say(lines: list[str]) -> None:
    for line in lines:
        print(f"serving: {line}", flush=True)
