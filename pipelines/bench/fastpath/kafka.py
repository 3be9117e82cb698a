"""Sample on `metrics` until the forecast is on `forecasts`, in turn with a bare echo by the same client and broker."""

from __future__ import annotations

import queue
from pathlib import Path
from time import perf_counter_ns

from configs.sections import Kafka
from pipelines.bench.fastpath.champions import promote, shelve
from pipelines.bench.fastpath.children import command
from pipelines.bench.fastpath.load import BEGUN, JOBS, SampleFeed
from pipelines.bench.fastpath.local import frozen
from pipelines.kafka.broker import Record, offsets
from pipelines.kafka.librdkafka import Feed as TopicFeed
from pipelines.kafka.librdkafka import Sender
from pipelines.serve.models.model_set import ModelSet
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack

ECHO = ("decisions", "outcomes")
"""Topics of one partition each that nobody else uses here."""
VERSION = "version"
_PATIENCE_S = 60.0
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


class Ask:
    """A producer on one topic and a reader of another, librdkafka's both."""

    def __init__(self, kafka: Kafka, into: str, out: str) -> None:
        self._into, self._came = into, queue.SimpleQueue[list[Record]]()
        self._sender = Sender(kafka)
        ends = {partition: end for partition, (_, end) in offsets(kafka, out).items()}
        self._feed = TopicFeed(kafka, out, ends, self._came.put)

    def closed(self, asked: list[tuple[str, bytes, bytes]], process: Process) -> list[int]:
        """Send each record when the one before is answered: nanoseconds.

        Args:
            asked: key, record, and the version that its answer's header names.
            process: who answers.

        Raises:
            ProcessError: no answer.
        """
        return [self._one(*record, process) for record in asked]

    def close(self) -> None:
        """Leave."""
        self._feed.close()
        self._sender.close()

    def _one(self, key: str, raw: bytes, version: bytes, process: Process) -> int:
        began = perf_counter_ns()
        self._sender.send(self._into, key, raw, [(VERSION, version)])
        while True:
            try:
                records = self._came.get(timeout=_PATIENCE_S)
            except queue.Empty:
                raise ProcessError(f"no answer from {process.name} to {version!r}:\n{process.last_lines()}") from None
            if any(record.headers.get(VERSION) == version for record in records):
                break
        took = perf_counter_ns() - began
        self._sender.poll()
        return took


def measure(
    stack: Stack, folder: Path, made: ModelSet, runs: int, events: int, warm: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Nanoseconds of every event of one job, a list per run: the fast path's and the echo's.

    Args:
        stack: with a broker, its topics empty, settings as in `fastpath_load.settings`.
        folder: for the champion.
        made: the champion.
        runs: of each.
        events: per run, in a closed loop.
        warm: events before those that count.
    """
    kafka, job, feed = stack.settings.kafka, JOBS[0], SampleFeed(JOBS[:1])
    shelve(folder, "1", made)
    promote(folder, JOBS[:1], "1")
    echo = stack.spawn("fastpath-echo", command("fastpath_kafka_echo", *ECHO), _ONE_THREAD)
    server = stack.spawn("fastpath-server", command("fastpath_server", folder), _ONE_THREAD)
    asks = Ask(kafka, "metrics", "forecasts"), Ask(kafka, *ECHO)
    ours: list[list[int]] = []
    floor: list[list[int]] = []
    try:
        _begin(kafka, feed)
        for run in range(-1, runs):
            taken = [feed.take(job) for _ in range(warm if run < 0 else events)]
            asked = [(job, raw, str(window).encode()) for window, raw in taken]
            with frozen():
                floor.append(asks[1].closed(asked, echo))
                ours.append(asks[0].closed(asked, server))
    finally:
        for ask in asks:
            ask.close()
        stack.end("fastpath-server")
        stack.end("fastpath-echo")
    return ours[1:], floor[1:]


def produce(kafka: Kafka, records: list[tuple[str, bytes]]) -> None:
    """Put samples on `metrics`, as many at once as the client likes."""
    sender = Sender(kafka)
    for at, (job, raw) in enumerate(records):
        sender.send("metrics", job, raw, [])
        if at % 1000 == 999:
            sender.poll()
    sender.close(_PATIENCE_S)


def _begin(kafka: Kafka, feed: SampleFeed) -> None:
    """The job's history, and a first forecast, before which nothing is counted."""
    produce(kafka, feed.history(feed.jobs, BEGUN))
    heard = queue.SimpleQueue[list[Record]]()
    reader = TopicFeed(kafka, "forecasts", dict.fromkeys(offsets(kafka, "forecasts"), 0), heard.put)
    try:
        heard.get(timeout=2 * _PATIENCE_S)
    except queue.Empty:
        raise ProcessError("no forecast after the history; see var/log/fastpath-server.log") from None
    finally:
        reader.close()
