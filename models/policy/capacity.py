"""What a number of executors can do: batch time as overhead plus work, learned from busy batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

BUSY_SHARE = 0.5
"""A batch teaches capacity only if at least this share of its time was work."""
DECAY = 0.95
"""What the past keeps of its weight with each batch."""
PRIOR_BATCHES = 3
MOST_OFF = 5.0
"""The service time learned stays within this factor of the contract's first guess."""


@dataclass(frozen=True)
class BatchModel:
    """Batch time of a streaming query: `overhead_s + per_record_s * rows / parallelism`, in seconds.

    `xx` and `xd` are the discounted least-squares sums of busy batches (x = rows / parallelism, d = duration minus
    overhead), so that learning is two additions and the model a small value.
    """

    overhead_s: float
    per_record_s: float
    prior_overhead_s: float
    prior_per_record_s: float
    xx: float = 0.0
    xd: float = 0.0

    @classmethod
    def guess(cls, overhead_s: float, per_record_s: float) -> BatchModel:
        """A model that has seen nothing yet."""
        return cls(overhead_s, per_record_s, overhead_s, per_record_s)


def parallelism(executors: int, cores: int, tasks: int) -> float:
    """Tasks per wave when `tasks` equal tasks run on `executors * cores` slots: the last wave may be half empty."""
    slots = executors * cores
    if slots <= 0:
        return 0.0
    return tasks / math.ceil(tasks / slots)


def ceiling(cores: int, tasks: int) -> int:
    """Executors beyond which the heavy stage has no task left for another slot."""
    return max(1, math.ceil(tasks / cores))


def is_busy(model: BatchModel, rows: int, slots: float, duration_s: float) -> bool:
    """Whether most of the batch's time was work, so that its duration says something about capacity.

    Judged by the clock and not by the model's own service time: a model that is wrong must be able to find out.
    """
    return slots > 0 and rows > 0 and duration_s - model.overhead_s >= BUSY_SHARE * duration_s


def learn(model: BatchModel, rows: int, slots: float, duration_s: float) -> BatchModel:
    """The model after one busy batch: ridge regression of (duration - overhead) on rows / slots, forgetting slowly.

    Overhead is kept at its prior: over the narrow range of one load the two cannot be told apart, and the product of
    both errors is what the planner uses. The first guess weighs as much as `PRIOR_BATCHES` batches of one second of
    work, so that a slow batch of a few rows, which is a pause and no service time, hardly moves the slope.
    """
    x, d = rows / slots, max(duration_s - model.overhead_s, 0.0)
    xx, xd = DECAY * model.xx + x * x, DECAY * model.xd + x * d
    prior = PRIOR_BATCHES / model.prior_per_record_s**2
    slope = (xd + prior * model.prior_per_record_s) / (xx + prior)
    slope = min(max(slope, model.prior_per_record_s / MOST_OFF), model.prior_per_record_s * MOST_OFF)
    return replace(model, per_record_s=slope, xx=xx, xd=xd)


def capacity_rps(model: BatchModel, slots: float, batch_s: float) -> float:
    """Records/s that `slots` sustain with batches of `batch_s`: `slots / per_record_s * (1 - overhead_s / batch_s)`."""
    return max(0.0, slots / model.per_record_s * (1 - min(model.overhead_s / batch_s, 0.9)))
