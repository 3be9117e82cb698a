"""When a job's heartbeat is due and what it says: which forecast stands, so that this need not be repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidecast.messages import Forecast, Heartbeat, MetricSample

EVERY_S = 8.0
"""Between two heartbeats of a job, wall seconds: with samples once a second they are less than 10 s apart."""
SILENT_S = 10.0
"""A job without metrics for this long gets no more heartbeats: they would hide that it is silent."""


@dataclass
class Pulse:
    """The heartbeats of one job; `last` is the wall time of the newest one."""

    last: float = -math.inf

    def beat(self, sample: MetricSample, wall_time: float, issued: Forecast | None) -> list[Heartbeat]:
        """The heartbeat that is due, or none.

        Args:
            sample: the newest of the job: a silent job has no heartbeats.
            wall_time: now.
            issued: the forecast that stands; None without one.
        """
        if wall_time - self.last < EVERY_S:
            return []
        self.last = wall_time
        standing, since = (None, None) if issued is None else (str(issued.epoch), issued.wall_time)
        time, scale = sample.time + sample.span_s, sample.time_scale
        return [Heartbeat(sample.job, "serving", time, wall_time, scale, standing, since)]
