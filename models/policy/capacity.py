"""What a number of executors can do: batch time as overhead plus work, learned from busy batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

BUSY_SHARE = 0.5
"""A batch teaches capacity only if at least this share of its time was work."""


@dataclass(frozen=True)
class BatchModel:
    """Batch time of a streaming query: `overhead_s + per_record_s * rows / parallelism`, in seconds.

    The four sums are weighted least-squares statistics of busy batches (x = rows / parallelism, d = duration), so that
    learning is one addition and the model a small value; `prior_weight` batches stand for the first guess.
    """

    overhead_s: float
    per_record_s: float
    prior_overhead_s: float
    prior_per_record_s: float
    weight: float = 0.0
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


def learn(model: BatchModel, rows: int, slots: float, duration_s: float, decay: float = 0.95) -> BatchModel:
    """The model after one busy batch: ridge regression of (duration - overhead) on rows / slots, forgetting slowly.

    Overhead is kept at its prior: over the narrow range of one load the two cannot be told apart, and the product of
    both errors is what the planner uses. The slope stays within a factor of eight of its prior.
    """
    x, d = rows / slots, max(duration_s - model.overhead_s, 0.0)
    weight, xx, xd = decay * model.weight + 1, decay * model.xx + x * x, decay * model.xd + x * d
    prior = 3 * xx / weight  # three typical batches' worth of the first guess
    slope = (xd + prior * model.prior_per_record_s) / (xx + prior) if xx > 0 else model.per_record_s
    slope = min(max(slope, model.prior_per_record_s / 8), model.prior_per_record_s * 8)
    return replace(model, per_record_s=slope, weight=weight, xx=xx, xd=xd)


def capacity_rps(model: BatchModel, slots: float, batch_s: float) -> float:
    """Records/s that `slots` sustain with batches of `batch_s`: `slots / per_record_s * (1 - overhead_s / batch_s)`."""
    return max(0.0, slots / model.per_record_s * (1 - min(model.overhead_s / batch_s, 0.9)))
