"""A trace's earlier weeks as back-dated records on `metrics`: history enters through the same gate as live data."""

from __future__ import annotations

import time

from configs.settings import Settings
from pipelines.broker import Publisher
from pipelines.jobs.trace import load_trace
from tidecast.messages import MetricSample


def publish_history(settings: Settings, job: str | None = None) -> int:
    """Publish one interval per step of the trace before the live part; returns how many.

    `time` is the step's begin in trace time and `span_s` its length; the record itself is stamped with the moment
    it is published, as every other.

    Raises:
        TraceError: the trace cannot be used.
        BrokerError: no broker, or no topic `metrics`.
    """
    trace = load_trace(settings.replay)
    publisher = Publisher(settings.kafka)
    name = job or settings.job.name
    times, rates = trace.history()
    for begin, rate in zip(times.tolist(), rates.tolist(), strict=True):
        sample = MetricSample(
            job=name, kind="interval", time=begin, wall_time=time.time(), time_scale=settings.replay.speed,
            span_s=trace.step_s, arrival_rps=rate,
        )  # fmt: skip
        publisher.send("metrics", name, sample)
    publisher.close()
    return len(times)
