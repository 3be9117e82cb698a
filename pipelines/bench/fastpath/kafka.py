"""Sample on `metrics` until the forecast is on `forecasts`, in turn with a bare echo by the same client and broker."""

from __future__ import annotations

import queue
from contextlib import closing
from time import perf_counter_ns

from configs.sections import Kafka
from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.bench.fastpath.load import JOBS, SampleFeed
from pipelines.bench.fastpath.local import frozen_heap
from pipelines.bench.fastpath.served import start_module
from pipelines.kafka.broker import Record, topic_offsets
from pipelines.kafka.librdkafka import Feed as TopicFeed
from pipelines.kafka.librdkafka import Sender
from pipelines.serve.models.model_set import ModelSet
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack

ECHO = ("decisions", "outcomes")
"""Topics of one partition each that nobody else uses here."""
VERSION = "version"
_PATIENCE_S = 60.0


class RoundTrip:
    """A producer on one topic and a reader of another, both of librdkafka; reading begins at the topic's end."""

    def __init__(self, kafka: Kafka, into: str, out: str, process: Process) -> None:
        self._into, self._process, self._came = into, process, queue.SimpleQueue[list[Record]]()
        self._sender = Sender(kafka)
        ends = {partition: end for partition, (_, end) in topic_offsets(kafka, out).items()}
        self._feed = TopicFeed(kafka, out, ends, self._came.put)

    def time_one(self, key: str, raw: bytes, version: bytes) -> int:
        """Send one record and time it: block until an answer has the same `version` header.

        Returns:
            Nanoseconds from the send until that answer was handed over.

        Raises:
            ProcessError: nothing came for 60 s; the message holds the last 15 lines of the process's log.
            BrokerError, confluent_kafka.KafkaException: the producer's queue is full, or the record too large.
        """
        began = perf_counter_ns()
        self._sender.send(self._into, key, raw, [(VERSION, version)])
        while not any(record.headers.get(VERSION) == version for record in self.receive()):
            pass
        took = perf_counter_ns() - began
        self._sender.poll()
        return took

    def receive(self) -> list[Record]:
        """Take the next batch of records that the reader was handed; blocks for up to a minute.

        Raises:
            ProcessError: nothing came in that time; the message holds the last lines of the process's log.
        """
        try:
            return self._came.get(timeout=_PATIENCE_S)
        except queue.Empty:
            raise ProcessError(f"no answer from {self._process.name}:\n{self._process.last_lines()}") from None

    def close(self) -> None:
        """End the reader, then the producer, which waits up to 5 s for what is queued."""
        self._feed.close()
        self._sender.close()


def time_by_kafka(
    stack: Stack, model: ModelSet, runs: int, events: int, warm: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Time one job's samples on `metrics` until their forecasts are on `forecasts`, in turn with a bare echo.

    Each record is sent when the one before it is answered. Starts and ends the processes "server" and "echo"; writes
    the model to `var/champions`.

    Args:
        stack: with a broker, its topics empty, settings as from `load.bench_settings`.
        model: that serves.
        runs: of fast path and echo each.
        events: per run, one at a time.
        warm: events before the first run, which do not count.

    Returns:
        Nanoseconds of every event, a list per run: the fast path's, then the echo's.

    Raises:
        ProcessError: a process does not start, or does not answer for a minute.
        BrokerError: the broker does not answer, or its topics are not there.
        OSError: the model cannot be written.
    """
    kafka, job, feed, folder = stack.settings.kafka, JOBS[0], SampleFeed(JOBS[:1]), stack.settings.var_dir / "champions"
    add_version(folder, "1", model)
    promote_version(folder, feed.jobs, "1")
    echo = start_module(stack, "echo", "pipelines.bench.fastpath.child.kafka_echo", *ECHO)
    server = start_module(stack, "server", "pipelines.bench.fastpath.child.server", folder)
    ours: list[list[int]] = []
    floor: list[list[int]] = []
    with (
        closing(RoundTrip(kafka, *ECHO, echo)) as echo_trip,
        closing(RoundTrip(kafka, "metrics", "forecasts", server)) as fast_path,
    ):
        produce_samples(kafka, feed.history())
        fast_path.receive()  # a first forecast, before which nothing is counted
        for count in (warm, *[events] * runs):
            records = [(job, raw, str(window).encode()) for window, raw in (feed.take(job) for _ in range(count))]
            with frozen_heap():
                floor.append([echo_trip.time_one(*record) for record in records])
                ours.append([fast_path.time_one(*record) for record in records])
    stack.end("server")
    stack.end("echo")
    return ours[1:], floor[1:]


def produce_samples(kafka: Kafka, records: list[tuple[str, bytes]]) -> None:
    """Send (job, encoded sample) records to `metrics`, then wait up to 60 s until the broker has acknowledged them.

    What is not acknowledged by then is dropped without an error.

    Raises:
        BrokerError, confluent_kafka.KafkaException: no broker is set, the producer's queue is full, or a record too
            large.
    """
    sender = Sender(kafka)
    for at, (job, raw) in enumerate(records):
        sender.send("metrics", job, raw, [])
        if at % 1000 == 999:
            sender.poll()
    sender.close(_PATIENCE_S)
