"""One run of a real managed job whose executors are raised one by one and lowered, by decisions on the topic."""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from configs.contract import load_contract
from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.publisher import Publisher
from pipelines.report.recorded.dump import dump_topics
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack
from tidecast.messages import Control, Decision, Heartbeat, Message, MetricSample, Outcome, decode

JOB = "word_count"
RPS, BEAT_S = 12, 3.0
"""Records/s, spread over the partitions, so that every batch has a task for every executor; seconds from one sign of
life to the next."""
WARM_BATCHES = 8
"""Batches with records before the first decision: those of a cold driver take seconds."""
REST_S, SPREAD_S = 2.0, 2.0
"""Seconds from an outcome to the next decision: at least, and drawn on top, so that it falls anywhere in a trigger."""
_KINDS: dict[str, Any] = {"metrics": MetricSample, "outcomes": Outcome}
PATIENCE_S = 300.0  # for whatever is slow and has not failed


class RaiseError(CorrectableError, RuntimeError):
    """The job refused to be raised; the message says why, with its last log lines."""


def run_session(stack: Stack, run_dir: Path, stock_starts: bool, raises: int, seed: int) -> None:
    """Run the job from its start to its end, with so many raises by one executor; blocks, some 15 to 25 s for each.

    The executors climb from the contract's least to its most and fall back at once, again and again. Leaves in
    `run_dir` what a managed job leaves, and the topics' records, outcomes among them, as `<topic>.jsonl`.

    Args:
        stack: with broker and Spark, and topics of which nothing else makes use.
        run_dir: is made; must not hold another run.
        stock_starts: executors start as stock Spark's do.
        raises: at least 1.
        seed: of the pauses.

    Raises:
        RaiseError: the job refused a decision.
        SettingsError: the job's contract is missing or wrong, or leaves no room for a raise.
        ProcessError: the job cannot be started, ended, was not ready within 300 s, or told no outcome within 300 s.
        BrokerError, OSError: the broker does not answer, a file cannot be written.
    """
    began, chance = time.time(), random.Random(seed)
    settings = stack.settings
    bounds = load_contract(JOB, settings.contracts_dir).executors
    if bounds.max <= bounds.min:
        raise RaiseError(f"contract {JOB}: min={bounds.min}, max={bounds.max}: no raise can be asked for. Raise max.")
    run_dir.mkdir(parents=True)
    arguments = ["--run-dir", str(run_dir), *(["--stock-starts"] if stock_starts else [])]
    with _steady_load(settings.kafka):
        job = stack.spawn(JOB, [sys.executable, "-m", f"pipelines.jobs.{JOB}", *arguments])
        try:
            job.wait_until(lambda: _batches(run_dir) >= WARM_BATCHES, f"finish {WARM_BATCHES} batches", PATIENCE_S)
            commands = _Commands(settings.kafka, job, run_dir.name)
            left, climb = raises, range(bounds.min + 1, bounds.max + 1)
            commands.lower_to(bounds.min)
            while left:
                for target in itertools.islice(climb, left):
                    time.sleep(REST_S + SPREAD_S * chance.random())
                    commands.raise_to(target)
                    left -= 1
                time.sleep(REST_S + SPREAD_S * chance.random())
                commands.lower_to(bounds.min)
            commands.close()
        finally:
            stack.end(JOB)
    dump_topics(settings.kafka, run_dir, began)


class _Commands:
    """Sends decisions as an autoscaler does, and waits for what becomes of each."""

    def __init__(self, kafka: Kafka, job: Process, session: str) -> None:
        self._publisher, self._follower = Publisher(kafka), Follower(kafka, list(_KINDS), start="latest")
        self._job, self._ids = job, (f"{session}-{number}" for number in itertools.count())

    def raise_to(self, executors: int) -> None:
        """Decide for more executors and return when they were of use, or were given up."""
        name = self._decide(executors)
        self._until(lambda one: isinstance(one, Outcome) and one.decision_id == name, f"raise to {executors} executors")

    def lower_to(self, executors: int) -> None:
        """Decide for fewer executors, or as many as there are, and return when a second of metrics shows so many."""
        self._decide(executors)
        self._until(
            lambda one: isinstance(one, MetricSample) and one.executors == executors and not one.pending_executors,
            f"go down to {executors} executors",
        )

    def close(self) -> None:
        self._publisher.close()
        self._follower.close()

    def _decide(self, executors: int) -> str:
        now, name = time.time(), next(self._ids)
        reason = "so that a raise can be measured"
        self._publisher.send(
            "decisions", JOB, Decision(name, JOB, now, now, 1.0, "act", "bench", executors, reason, [], {}, {})
        )
        self._publisher.flush()
        return name

    def _until(self, wanted: Callable[[Message], bool], what: str) -> None:
        records = self._follower.poll
        self._job.wait_until(lambda: any([self._is(wanted, one) for one in records(0.2)]), what, PATIENCE_S)

    def _is(self, wanted: Callable[[Message], bool], record: Record) -> bool:
        said = decode(_KINDS[record.topic], record.value)
        if isinstance(said, Outcome) and said.status in ("refused", "failed"):
            raise RaiseError(f"{said.decision_id} was {said.status}: {said.reason}\n{self._job.last_lines()}")
        return wanted(said)


@contextmanager
def _steady_load(kafka: Kafka) -> Iterator[None]:
    """Context manager: records and an autoscaler's heartbeats go to the topics, and job time is wall time."""
    publisher, over = Publisher(kafka), threading.Event()
    now = time.time()
    publisher.send("control", f"{JOB}:clock", Control(JOB, now, wall_start=now, trace_start=now, time_scale=1.0))

    def produce() -> None:
        due = beat = time.time()
        for number in itertools.count():
            if over.wait(max(0.0, due - time.time())):
                return
            now, due = time.time(), due + 1 / RPS
            if now >= beat:
                beat = now + BEAT_S
                publisher.send("heartbeats", JOB, Heartbeat(JOB, "autoscaler", now, now, 1.0))
            event = encode_event(LoadEvent(number, now, f"key-{number % 50:03d}"))
            partition = number % kafka.event_partitions
            publisher.send_bytes("events", b"key", event, partition=partition, timestamp_s=now)

    producer = threading.Thread(target=produce, name="steady load", daemon=True)
    producer.start()
    try:
        yield
    finally:
        over.set()
        producer.join(10)
        publisher.close()


def _batches(run_dir: Path) -> int:
    """How many batches with records have finished."""
    path = run_dir / f"{JOB}.progress.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    return sum(json.loads(line)["numInputRows"] > 0 for line in lines if line.endswith("}"))
