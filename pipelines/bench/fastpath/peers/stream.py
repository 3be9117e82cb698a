"""The streaming form of the same step on the same broker: a Structured Streaming query as fast as it goes."""

from __future__ import annotations

import queue
import time
from contextlib import closing
from time import perf_counter_ns

from pipelines.bench.fastpath.kafka import produce_samples
from pipelines.bench.fastpath.load import BEGIN, JOBS, STEP_S, SampleFeed
from pipelines.bench.fastpath.served import start_module
from pipelines.kafka.broker import Record, topic_offsets
from pipelines.kafka.librdkafka import Feed as TopicFeed
from pipelines.kafka.librdkafka import Sender
from pipelines.kafka.topics import create_topics
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import origin_of
from pipelines.serve.stream.fleet_step import write_model_file
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.messages import Forecast, decode

BEGUN = 400
"""Windows of history: more than a GRU looks back, and not long to read."""
PER_S = 4.0  # samples per second
_PATIENCE_S = 300.0
Came = queue.SimpleQueue[tuple[int, list[Record]]]
"""When records came (ns), and the records."""


def time_streaming_query(stack: Stack, model: ModelSet, events: int, warm: int) -> list[int]:
    """Time samples on `metrics` until their forecasts are on `forecasts`, made by a Structured Streaming query.

    Four samples a second, over 16 jobs in turn, whether or not the one before is answered, after 400 windows of history
    per job. Starts and ends the process "query"; its state stays in `var/stream`.

    Args:
        stack: with a broker, settings as from `load.bench_settings`; the topics get the prefix "stream.".
        model: that serves every job.
        events: samples that count.
        warm: samples before them.

    Returns:
        (events,) nanoseconds from the send of a sample until its forecast was handed over, in the order sent.

    Raises:
        ProcessError: the query does not start or ends, or forecasts are missing after 300 s.
        BrokerError, kafka.errors.KafkaError: the broker does not answer or refuses.
        OSError: the model cannot be written.
    """
    kafka, feed = stack.settings.kafka.model_copy(update={"prefix": "stream."}), SampleFeed()
    folder, sent_ns, came = stack.settings.var_dir / "stream", dict[tuple[str, int], int](), Came()
    create_topics(kafka)
    for job in JOBS:
        serves = Deployment(1, f"{job}-forecaster", "1", model.digests, BEGIN, BEGIN, BEGIN - 1, STEP_S)
        write_model_file(folder / "sets", job, serves, dict(model.members))
    produce_samples(kafka, feed.history(BEGUN))
    query = start_module(
        stack, "query", "pipelines.bench.fastpath.child.stream_query", folder / "checkpoint", folder / "sets",
        TIDECAST_KAFKA__PREFIX=kafka.prefix,
    )  # fmt: skip
    start_at = dict.fromkeys(topic_offsets(kafka, "forecasts"), 0)
    with (
        closing(TopicFeed(kafka, "forecasts", start_at, lambda found: came.put((perf_counter_ns(), found)))),
        closing(Sender(kafka)) as sender,
    ):
        _collected(came, {(job, BEGIN + BEGUN - 1) for job in JOBS}, query)
        begin = time.monotonic()
        for number in range(warm + events):
            time.sleep(max(begin + number / PER_S - time.monotonic(), 0))
            job = JOBS[number % len(JOBS)]
            window, raw = feed.take(job)
            sent_ns[job, window] = perf_counter_ns()
            sender.send("metrics", job, raw, [])
            sender.poll()
        arrived_ns = _collected(came, set(sent_ns), query)
    stack.end("query")
    return [arrived_ns[key] - began for key, began in sent_ns.items()][warm:]


def _collected(came: Came, wanted: set[tuple[str, int]], query: Process) -> dict[tuple[str, int], int]:
    """When the forecasts of these jobs and windows came (ns)."""
    arrived_ns: dict[tuple[str, int], int] = {}
    until = time.monotonic() + _PATIENCE_S
    while missing := wanted - arrived_ns.keys():
        try:
            at, records = came.get(timeout=5)
        except queue.Empty:
            if time.monotonic() > until or not query.running():
                raise ProcessError(f"{len(missing)} forecasts are missing:\n{query.last_lines()}") from None
            continue
        for record in records:
            forecast = decode(Forecast, record.value)
            arrived_ns.setdefault((forecast.job, origin_of(forecast)), at)
    return arrived_ns
