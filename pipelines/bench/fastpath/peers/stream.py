"""The streaming form of the same step on the same broker: a Structured Streaming query as fast as it goes."""

from __future__ import annotations

import queue
import time
from pathlib import Path
from time import perf_counter_ns

from pipelines.bench.fastpath.children import command
from pipelines.bench.fastpath.kafka import produce
from pipelines.bench.fastpath.load import BEGIN, JOBS, STEP_S, SampleFeed
from pipelines.kafka.broker import Record, offsets
from pipelines.kafka.librdkafka import Feed as TopicFeed
from pipelines.kafka.librdkafka import Sender
from pipelines.kafka.topics import create_topics
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.step.event import origin_of
from pipelines.serve.step.generations import Generation
from pipelines.serve.stream.fleet_step import publish
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.messages import Forecast, decode

BEGUN = 400
"""Windows of history: more than a GRU looks back, and not long to read."""
PER_S = 4.0
_PATIENCE_S = 300.0
Heard = queue.SimpleQueue[tuple[int, list[Record]]]


def measure(stack: Stack, folder: Path, made: ModelSet, events: int, warm: int) -> list[int]:
    """Nanoseconds from a sample on `metrics` to its forecast on `forecasts`, four samples a second over 16 jobs.

    Args:
        stack: with a broker, settings as in `fastpath_load.settings`; the topics are others than what ran before used.
        folder: for the set and the query's checkpoint.
        made: the champion.
        events: that count.
        warm: events before them.
    """
    kafka, feed = stack.settings.kafka.model_copy(update={"prefix": "stream."}), SampleFeed()
    create_topics(kafka)
    for job in JOBS:
        serves = Generation(1, f"{job}-forecaster", "1", made.digests, BEGIN, BEGIN, BEGIN - 1, STEP_S)
        publish(folder / "sets", job, serves, dict(made.members))
    produce(kafka, feed.history(JOBS, BEGUN))
    argv = command("fastpath_stream_query", folder / "checkpoint", folder / "sets")
    query = stack.spawn("fastpath-query", argv, {"OMP_NUM_THREADS": "1", "TIDECAST_KAFKA__PREFIX": kafka.prefix})
    heard = Heard()
    reader = TopicFeed(
        kafka, "forecasts", dict.fromkeys(offsets(kafka, "forecasts"), 0),
        lambda records: heard.put((perf_counter_ns(), records)),
    )  # fmt: skip
    try:
        _collect(heard, {(job, BEGIN + BEGUN - 1) for job in JOBS}, query)
        took = _asked(Sender(kafka), feed, heard, warm + events, query)
    finally:
        reader.close()
        stack.end("fastpath-query")
    return took[warm:]


def _asked(sender: Sender, feed: SampleFeed, heard: Heard, events: int, query: Process) -> list[int]:
    sent: dict[tuple[str, int], int] = {}
    start = time.monotonic()
    for number in range(events):
        time.sleep(max(start + number / PER_S - time.monotonic(), 0))
        job = JOBS[number % len(JOBS)]
        window, raw = feed.take(job)
        sent[job, window] = perf_counter_ns()
        sender.send("metrics", job, raw, [])
        sender.poll()
    came = _collect(heard, set(sent), query)
    sender.close()
    return [came[key] - began for key, began in sent.items()]


def _collect(heard: Heard, wanted: set[tuple[str, int]], query: Process) -> dict[tuple[str, int], int]:
    """When the forecasts of these jobs and windows came."""
    came: dict[tuple[str, int], int] = {}
    until = time.monotonic() + _PATIENCE_S
    while wanted - came.keys():
        try:
            at, records = heard.get(timeout=5)
        except queue.Empty:
            if time.monotonic() > until or not query.running():
                raise ProcessError(
                    f"{len(wanted - came.keys())} forecasts are missing:\n{query.last_lines()}"
                ) from None
            continue
        for record in records:
            said = decode(Forecast, record.value)
            came.setdefault((said.job, origin_of(said)), at)
    return came
