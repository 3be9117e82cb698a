"""From where on a server that is started reads `metrics`: as far back as a model may look, however long the topic."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pipelines.kafka.broker import Follower
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.windows import KEPT_STEPS
from tidecast.messages import MessageError, MetricSample

TAIL = 10_000
"""Newest records that tell which jobs report, and how fast their time runs."""
MARGIN_S = 60.0
"""What a sender's clock may lag behind, wall seconds."""


def rewind(metrics: Follower, step_s: float) -> None:
    """Go back to the oldest record that a job which reports now needs.

    Args:
        metrics: left at the record to begin with.
        step_s: seconds of job time per window.
    """
    now, samples = time.time(), []
    for record in metrics.tail(TAIL):
        try:
            samples.append(read_sample(record.value, now))
        except MessageError:
            continue  # was rejected when it came
    metrics.go_to(needed_from(samples, step_s))


def needed_from(samples: Iterable[MetricSample], step_s: float) -> float:
    """Wall time from which on `KEPT_STEPS` windows of every job of these samples were measured; 0 without any.

    Each job's time runs at its own pace: in a replay of 720 s a second, 60 days of it are two hours on the wall.
    """
    newest = {sample.job: sample for sample in samples}.values()
    depth_s = (KEPT_STEPS + 2) * step_s  # the first and the last window are parts
    return max(min((s.wall_time - depth_s / s.time_scale - MARGIN_S for s in newest), default=0.0), 0.0)
