"""Spark's ratio rule for DStreams: batch processing time over batch interval, up by the ratio, down by one.

Source: apache/spark `streaming/scheduler/ExecutorAllocationManager.scala` (SPARK-12133), the only streaming policy that
was merged into Spark. A DStream's batch covers one interval; here a batch covers what came since the last one began,
and the interval is the batch duration that the contract aims for. Where nothing comes, a DStream has empty batches and
a structured query none: both count as a ratio of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View
from models.policy.core.within import within

INTERVAL_S = 60.0
"""Seconds from one decision to the next (`spark.streaming.dynamicAllocation.scalingInterval`)."""


@dataclass(frozen=True, eq=False)
class SparkDstream:
    """`executors + max(round(ratio), 1)` from a ratio of `up_ratio` on, one less up to `down_share` of it.

    Attributes:
        name: spark_dstream.
        batch_s: batch interval, seconds.
        up_ratio: `scalingUpRatio`.
        down_share: `scalingDownRatio` as a share of `up_ratio` (0.3 of 0.9), so that one knob moves both.
    """

    name: str
    batch_s: Floats | float
    up_ratio: Floats | float = 0.9
    down_share: float = 0.3 / 0.9
    knob: ClassVar[str] = "up_ratio"

    @classmethod
    def of(cls, name: str, planning: Planning) -> SparkDstream:
        """With Spark's defaults and the contract's batch duration."""
        return cls(name, planning.batch_s)

    def fresh(self, runs: int) -> Memory:
        """Nothing to carry."""
        return {}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """From the executors that run when adding, as Spark does; without a finished batch nothing changes."""
        ratio = np.where((view.in_batch == 0) & np.isnan(view.batch_s), 0.0, view.batch_s) / self.batch_s
        added = view.ready + np.maximum(np.floor(ratio + 0.5), 1.0)
        fewer = np.where(view.ready > view.least, view.target - 1, view.target)
        down = ratio <= self.up_ratio * self.down_share
        return memory, within(view, np.where(ratio >= self.up_ratio, added, np.where(down, fewer, view.target)))
