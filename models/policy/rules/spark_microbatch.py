"""Spark's proposal for Structured Streaming: dynamic allocation that waits for tasks of a whole micro-batch.

Source: SPARK-24815 and apache/spark pull request 42352 (closed, never merged). By reading, of its review threads and of
Spark's core `ExecutorAllocationManager`: `spark.dynamicAllocation.streaming.enabled` counts the tasks that wait in all
stages of a micro-batch's job, not of one stage; executors are asked for in steps of 1, 2, 4, 8 while tasks wait, up to
one slot per task; the number of executors let go is limited by a deallocation ratio, spread over micro-batches.

Our interpretation, as the code and its defaults were not to be had: tasks wait while a batch runs, so a batch that
takes longer than `share` of the trigger interval is a backlog; the step doubles with each trigger that ends so, and
starts at 1 again after one that does not. Executors are idle from a batch's end to the next trigger; where that is most
of the interval (batches shorter than `idle_share` of the threshold), `release` of them go, at least one, once per
trigger. `share`, `idle_share` and `release` are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View
from models.policy.core.within import useful, within


@dataclass(frozen=True, eq=False)
class SparkMicrobatch:
    """Steps of 1, 2, 4 … up while batches take longer than a share of the trigger, a share of the executors down.

    Attributes:
        name: spark_microbatch.
        trigger_s: trigger interval, seconds.
        share: of the trigger interval that a batch may take.
        idle_share: of that time, below which executors count as idle.
        release: share of the executors that one trigger may let go.
    """

    name: str
    trigger_s: Floats | float
    share: Floats | float = 0.9
    idle_share: float = 0.5
    release: float = 0.1
    knob: ClassVar[str] = "share"

    @classmethod
    def of(cls, name: str, planning: Planning) -> SparkMicrobatch:
        """With the contract's batch duration as the trigger interval."""
        return cls(name, planning.batch_s)

    def fresh(self, runs: int) -> Memory:
        """The first step is one executor."""
        return {"step": np.ones(runs)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """By the batches that ended; where none did, by how long one has been running at least."""
        lasted = np.where(np.isnan(view.batch_s), view.in_batch * view.since_s, view.batch_s)
        allowed = self.share * self.trigger_s
        known = np.isfinite(view.batch_s) | (view.in_batch == 0)
        late, idle = lasted > allowed, known & (lasted < self.idle_share * allowed)
        added = np.maximum(np.minimum(view.target + memory["step"], useful(view.capacity)), view.target)
        fewer = view.target - np.maximum(np.floor(self.release * view.ready), 1.0)
        wanted = np.where(late, added, np.where(idle, fewer, view.target))
        step = np.where(late, np.minimum(memory["step"] * 2, 2.0**20), 1.0)
        return {**memory, "step": step}, within(view, np.maximum(wanted, view.least))
