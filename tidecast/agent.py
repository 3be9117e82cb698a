"""`attach`: one line in a Spark streaming job that reports its metrics and, when asked, applies decisions."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tidecast
from tidecast.arrivals import SAMPLE_S, Arrivals
from tidecast.commands import Commands
from tidecast.connection.environment import ADDRESS, PREFIX, SIGNING_KEY
from tidecast.connection.outbox import Outbox
from tidecast.connection.reach import UnreachableError
from tidecast.connection.security import client_options
from tidecast.connection.signing import SigningKeys
from tidecast.control import WALL, Clock
from tidecast.fields import job_name
from tidecast.guard import Limits
from tidecast.job import Job
from tidecast.messages import Control
from tidecast.observer import POLL_S, Observer
from tidecast.replay.driver import POLL_S as REPLAY_POLL_S
from tidecast.replay.driver import Replays
from tidecast.replay.held_back import POLL_S as HOLD_POLL_S
from tidecast.replay.held_back import HeldBack
from tidecast.replay.replayable import Replayable
from tidecast.spark.actuator import ExecutorActuator
from tidecast.spark.cluster import Cluster
from tidecast.spark.source import BOOTSTRAP, choose_brokers, kafka_sources, subscribed_topics

log = logging.getLogger("tidecast")

SAID_S = 60.0  # seconds after which what still fails is said again
RETRY_S = 5.0
"""Seconds before a broker that has not answered, or lacks a topic, is asked again: so no wrong login locks an account,
and a broker is seldom made to tell all of its topics, as a client asks where one is missing."""
_agents: dict[tuple[str, str], tuple[Job, Cluster]] = {}
"""By Spark's id of the application and name of the job: its newest agent's state and query, until that agent ends."""
_agents_lock = threading.Lock()


def attach(
    query: Any,
    job: str,
    bootstrap: str | None = None,
    mode: str = "observe",
    clock: Clock | None = WALL,
    security: Mapping[str, Any] | None = None,
    executors: tuple[int, int] = (1, 4),
    cores_per_executor: int | None = None,
    source_bootstrap: str | None = None,
    source_security: Mapping[str, Any] | None = None,
    lost_contact_s: float = 60.0,
    prefix: str | None = None,
    replay: Replayable | None = None,
    signing_key: str | None = None,
) -> Agent:
    """Start Tidecast's agent beside a running streaming query: it reports metrics and, in mode `act`, scales executors.

    Returns at once; six daemon threads work until the query ends: Spark is polled every 0.25 s, end offsets every 0.5
    s. Their errors are logged (logger `tidecast`), retried after 1 s (5 s where a broker cannot be reached or lacks a
    topic), and never reach the query. Executors are not touched before Tidecast's broker and its topic `control` have
    answered.

    Args:
        query: what `.start()` returned.
        job: its name on Tidecast's topics: 1 to 64 letters, digits, dots, dashes or underscores.
        bootstrap: Kafka broker of Tidecast's topics, `host:port`; default: that of the query's own Kafka source, else
            the environment's TIDECAST_KAFKA__BOOTSTRAP.
        mode: "observe" changes nothing in the application (where it acted before, it keeps the number of executors),
            "act" sets the number of its executors, "freeze" takes them over and keeps their number. A message on topic
            `control` may narrow it, never widen it.
        clock: maps wall time to the job's time; None: wait for a replay's clock on topic `control`.
        security: kafka-python's client options for `bootstrap`, e.g. `{"security_protocol": "SASL_SSL", ...}`; default:
            those of the query's own source, where its broker is the same. An unknown one is only logged.
        executors: (least, most) that a decision may ask for, at least 1.
        cores_per_executor: not tasks, which are so many ÷ `spark.task.cpus`; default: `spark.executor.cores`, else 1.
        source_bootstrap: Kafka broker of the topics that the query reads; default: that of its own Kafka source, else
            `bootstrap`.
        source_security: kafka-python's options for it; default: translated from the source's own `kafka.*` options.
        lost_contact_s: after this many wall seconds without a decision or heartbeat, an acting agent sets the executors
            to the most of those at takeover, those running and those decided last.
        prefix: of the names of Tidecast's own topics; default: the environment's TIDECAST_KAFKA__PREFIX, else "".
        replay: how ranges of the query's topics are read again beside it; None: orders of replays are refused.
        signing_key: secret of at least 32 characters with which decisions, modes and orders for this job have to be
            signed; several, separated by commas, while it is changed. Default: the environment's TIDECAST_SIGNING_KEY;
            without one unsigned messages are obeyed.

    Returns:
        The running agent; `agent.stop()` ends it before the query ends, `agent.mode` is its present mode.

    Raises:
        ValueError: an argument is out of range, `job` is no valid name (`MessageError`), `ssl_check_hostname` is
            neither true nor false, a signing key is too short, no broker is known, or an agent of the same job follows
            a query of this application that is active.
        tidecast.spark.cluster.ClusterError: the query is not run by this process.
        py4j.protocol.Py4JError: Spark's JVM does not answer.
    """
    least, most = executors
    job_name(job)
    if mode not in Control.MODES:
        raise ValueError(f"mode={mode!r}: one of {', '.join(Control.MODES)} is expected")
    if not 1 <= least <= most:
        raise ValueError(f"executors={executors}: (least, most) with 1 <= least <= most is expected")
    if cores_per_executor is not None and cores_per_executor < 1:
        raise ValueError(f"cores_per_executor={cores_per_executor}: 1 or more are expected, or None for Spark's option")
    if not lost_contact_s > 0:
        raise ValueError(f"lost_contact_s={lost_contact_s}: seconds above 0 are expected")
    client_options(security or {})
    secret = os.environ.get(SIGNING_KEY) if signing_key is None else signing_key
    signing = None if secret is None else SigningKeys.read(secret)  # one that is set and empty is a mistake
    cluster = Cluster(query)
    source_options = kafka_sources(cluster)
    source_address = source_bootstrap or next((options[BOOTSTRAP] for options in source_options), None)
    address = bootstrap or source_address or os.environ.get(ADDRESS)
    if not address:
        raise ValueError(f"no broker known for job {job!r}: give attach(..., bootstrap='host:port') or set {ADDRESS}")
    ours, source = choose_brokers(address, security, source_address or address, source_security, source_options)
    prefix = os.environ.get(PREFIX, "") if prefix is None else prefix
    state = Job(
        name=job, prefix=prefix, widest_mode=mode, clock=clock, signing=signing, application=cluster.application,
        limits=Limits(least, most, cluster.slots_per_executor(job, cores_per_executor)),
        actuator=ExecutorActuator(cluster, job), outbox=Outbox(*ours, f"tidecast-{job}-outbox", prefix, signing),
        topics=tuple(subscribed_topics(source_options)), lost_contact_s=lost_contact_s, executors=cluster.executors(),
    )  # fmt: skip
    commands = Commands(state, *ours, clock is None)
    replays, held = Replays(state, replay, query), HeldBack(state, query)
    observer = Observer(state, cluster)
    _note_begun(state, cluster)
    agent = Agent(state, observer, Arrivals(state, *source), commands, replays, held)
    known = ", ".join(state.topics) or "unknown yet"
    later = "" if mode == "observe" else f"; {mode} once it and its topic control have answered"
    later += "" if signing is None else "; signed messages alone are obeyed"
    told = (job, tidecast.__version__, known, address, later)
    log.info("%s: attached, observing, release %s, topics %s; Tidecast's broker is %s%s", *told)
    return agent


def _note_begun(job: Job, cluster: Cluster) -> None:
    """Two agents of one job would ask for its executors twice, and tell each record of it twice."""
    key = cluster.application, job.name
    with _agents_lock:
        other, follows = _agents.get(key, (None, cluster))
        if other is not None and not other.stop.is_set() and follows.jquery.isActive():
            raise ValueError(
                f"job {job.name!r} has an agent in this application already, and its query is active: call that "
                "agent's stop() first, or give this query a job name of its own"
            )
        _agents[key] = job, cluster


def _note_ended(job: Job) -> None:
    with _agents_lock:
        for key in [key for key, (one, _) in _agents.items() if one is job]:
            del _agents[key]


class Agent:
    """The running agent in a driver: six daemon threads that end with the query or with `stop`."""

    def __init__(
        self, job: Job, observer: Observer, arrivals: Arrivals, commands: Commands, replays: Replays, held: HeldBack
    ) -> None:  # fmt: skip
        self._job = job
        sensors = [
            self._start("observe", _repeat, job, "watching Spark", observer.poll, POLL_S, observer.look),
            self._start("arrivals", _repeat, job, "sampling offsets", arrivals.sample, SAMPLE_S, arrivals.close),
            self._start("commands", _repeat, job, "following decisions", commands.poll, 0.0, commands.close),
            self._start("replays", _repeat, job, "replaying", replays.poll, REPLAY_POLL_S, replays.close),
            self._start("held back", _repeat, job, "holding live records back", held.poll, HOLD_POLL_S, held.close),
        ]
        self._threads = [*sensors, self._start("outbox", _send, job, sensors)]

    @property
    def mode(self) -> str:
        """Present mode: observe, act or freeze."""
        return self._job.mode

    def stop(self, timeout_s: float = 10.0) -> None:
        """End the agent: tell the batches that have ended, send what is queued; the number of executors stays as it is.

        Call it before `spark.stop()`; without it the agent ends with the query. Blocks up to `timeout_s` seconds;
        threads that are still busy then end later.
        """
        self._job.stop.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start(self, role: str, run: Callable[..., None], *given: Any) -> threading.Thread:
        thread = threading.Thread(target=run, args=given, name=f"tidecast-{self._job.name}-{role}", daemon=True)
        thread.start()
        return thread


def _repeat(
    job: Job, what: str, step: Callable[[], Any], period_s: float, close: Callable[[], None] = lambda: None
) -> None:
    """Call `step` every period until the agent ends; what it raises is logged, and every SAID_S again while it does."""
    failing: float | None = None
    due, said = time.monotonic(), -SAID_S
    while not job.stop.is_set():
        try:
            step()
            if failing is not None:
                log.warning("%s: %s works again after %.0f s", job.name, what, time.monotonic() - failing)
            failing, said = None, -SAID_S
        except Exception as error:
            if _driver_ended():
                job.stop.set()
                break
            failing = time.monotonic() if failing is None else failing
            asked_in_vain = isinstance(error, UnreachableError) or type(error) is LookupError  # no KeyError
            if time.monotonic() - said >= SAID_S:  # a driver's log has thousands of lines a minute, of Kafka's clients
                plain = asked_in_vain or isinstance(error, ValueError)  # its words say enough
                log.warning("%s: %s fails, trying on: %s", job.name, what, error if plain else repr(error))
                log.debug("%s: %s", job.name, what, exc_info=True)
                said = time.monotonic()
            job.stop.wait(RETRY_S if asked_in_vain else 1.0)
        due = max(due + period_s, time.monotonic())
        job.stop.wait(due - time.monotonic())
    _quietly(close)


def _send(job: Job, sensors: Sequence[threading.Thread]) -> None:
    _repeat(job, "sending", job.outbox.send_next, 0.0)
    for thread in sensors:
        thread.join(3.0)
    _quietly(job.outbox.close)
    job.actuator.release()
    _note_ended(job)


def _quietly(close: Callable[[], None]) -> None:
    try:
        close()
    except Exception as error:
        log.debug("while ending: %r", error)


def _driver_ended() -> bool:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return context is None or context._jsc is None
