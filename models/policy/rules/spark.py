"""Spark's own rules: the ratio rule for DStreams, and the proposal of dynamic allocation for Structured Streaming.

DStreams: apache/spark `streaming/scheduler/ExecutorAllocationManager.scala` (SPARK-12133), the only streaming policy
that was merged into Spark. A DStream's batch covers one interval; here a batch covers what came since the last one
began, and the interval is the batch duration that the contract aims for. Where nothing comes, a DStream has empty
batches and a structured query none: both count as a ratio of 0.

Micro-batches: SPARK-24815 and pull request 42352 (closed, never merged), by reading of its review threads and of
Spark's core `ExecutorAllocationManager`: tasks that wait in all stages of a micro-batch's job are counted; executors
are asked for in steps of 1, 2, 4, 8 while tasks wait, up to one slot per task; the executors let go are limited by a
deallocation ratio, spread over micro-batches. Our interpretation, as code and defaults were not to be had: a batch that
takes longer than `share` of the trigger interval is a backlog; the step doubles with each trigger that ends so, and
starts at 1 again after one that does not. Executors are idle from a batch's end to the next trigger; where that is most
of the interval (batches shorter than `idle_share` of the threshold), `release` of them go, at least one, once per
trigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice
from models.policy.core.policy import Rule, clipped_choice
from models.policy.core.view import Memory, View

INTERVAL_S = 60.0
"""Seconds from one decision to the next (`spark.streaming.dynamicAllocation.scalingInterval`)."""


@dataclass(frozen=True, eq=False)
class SparkDstream(Rule):
    """Spark's rule for DStreams, by the ratio of batch duration to interval.

    From `up_ratio` on it asks for `executors + max(round(ratio), 1)`, and for one less up to `down_share * up_ratio`.

    Attributes:
        batch_s: batch interval, seconds.
        up_ratio: `scalingUpRatio`, a number or one per run.
        down_share: `scalingDownRatio` over `up_ratio` (0.3 / 0.9 in Spark), so that one knob (tuned parameter) moves
            both.
    """

    batch_s: Floats | float
    up_ratio: Floats | float = 0.9
    down_share: float = 0.3 / 0.9
    knob: ClassVar[str] = "up_ratio"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with Spark's defaults and the contract's batch duration as interval; `learned` is ignored."""
        return cls(name, contract.batch_s)

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Choose by the ratio of the mean duration of the batches since the last call to `batch_s`; 0 for an idle job.

        From `up_ratio` on: the executors that run plus max(round(ratio), 1); up to `down_share * up_ratio`: one less
        than the target, as in Spark. Without a batch the target stays. Returns the memory as it was (empty), and the
        choice.
        """
        ratio = np.where((view.in_batch == 0) & np.isnan(view.batch_s), 0.0, view.batch_s) / self.batch_s
        added = view.ready + np.maximum(np.floor(ratio + 0.5), 1.0)
        fewer = np.where(view.ready > view.least, view.target - 1, view.target)
        down = ratio <= self.up_ratio * self.down_share
        return memory, clipped_choice(view, np.where(ratio >= self.up_ratio, added, np.where(down, fewer, view.target)))


@dataclass(frozen=True, eq=False)
class SparkMicrobatch(Rule):
    """Dynamic allocation for Structured Streaming as proposed in SPARK-24815: steps of 1, 2, 4 … up, a share down.

    Attributes:
        trigger_s: trigger interval, seconds.
        share: of the trigger interval that a batch may take, a number or one per run.
        idle_share: of that time, below which executors count as idle.
        release: share of the executors that one trigger may let go.
    """

    trigger_s: Floats | float
    share: Floats | float = 0.9
    idle_share: float = 0.5
    release: float = 0.1
    knob: ClassVar[str] = "share"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with the contract's batch duration as the trigger interval; `learned` is ignored."""
        return cls(name, contract.batch_s)

    def fresh(self, runs: int) -> Memory:
        """Return a first step of one executor."""
        return {"step": np.ones(runs)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Raise by the step, which then doubles, after batches over `share * trigger_s`; lower after short ones.

        Short: under `idle_share` of that; the share `release` of the executors goes, at least one. Where no batch
        ended, the time that one has been running stands for its duration.

        Returns:
            The new memory, and the choice: (runs,) executors within the view's bounds, and reasons (flags).

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        lasted = np.where(np.isnan(view.batch_s), view.in_batch * view.since_s, view.batch_s)
        allowed = self.share * self.trigger_s
        known = np.isfinite(view.batch_s) | (view.in_batch == 0)
        late, idle = lasted > allowed, known & (lasted < self.idle_share * allowed)
        added = np.maximum(np.minimum(view.target + memory["step"], view.capacity.useful_executors), view.target)
        fewer = view.target - np.maximum(np.floor(self.release * view.ready), 1.0)
        wanted = np.where(late, added, np.where(idle, fewer, view.target))
        step = np.where(late, np.minimum(memory["step"] * 2, 2.0**20), 1.0)
        return {**memory, "step": step}, clipped_choice(view, np.maximum(wanted, view.least))
