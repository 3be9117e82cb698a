"""A wrapper that lets a policy decide at its own interval, and averages what it sees over that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.policy.core.choice import Choice, make_choice
from models.policy.core.policy import Policy
from models.policy.core.view import Memory, View

LATE_S = 1e-6
"""Seconds of tolerance for rounding when an interval is compared."""
GATHERED = ("arrival_rps", "processed_rps", "busy", "in_batch")
SUMS = tuple(f"paced_{field}" for field in (*GATHERED, "batch_s", "batches", "seconds"))


@dataclass(frozen=True, eq=False)
class Paced:
    """A policy that decides only every `interval_s` seconds, however often it is called.

    The first call starts the clock and keeps the target. Later calls keep it until `interval_s` has passed since the
    last decision; the policy then sees rates and shares as means over that time.

    Attributes:
        policy: that decides.
        interval_s: wall seconds from one decision to the next.
    """

    policy: Policy
    interval_s: float

    @property
    def name(self) -> str:
        """Name of the policy that decides."""
        return self.policy.name

    def fresh(self, runs: int) -> Memory:
        """Return the policy's own initial memory, with empty sums for the means."""
        return {**self.policy.fresh(runs), **dict.fromkeys(SUMS, np.zeros(runs)), "paced_at": np.full(runs, -np.inf)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return the policy's choice once `interval_s` (to 1 µs) has passed since its last one, else the target.

        The first call starts the clock and keeps the target. All runs share the clock of the first. The policy is shown
        rates and shares as means over the interval.

        Returns:
            The new memory (`memory` itself is not changed), and the choice: (runs,) executors to ask for and reasons
            (flags); between two decisions `view.target` without reasons.

        Raises:
            KeyError: the memory is not from `fresh` of this policy.
        """
        if memory["paced_at"][0] == -math.inf:
            return {**memory, "paced_at": np.full(view.runs, view.now_s)}, make_choice(view.target)
        due = view.now_s - memory["paced_at"][0] >= self.interval_s - LATE_S
        alone = memory["paced_seconds"][0] == 0
        if not (due and alone):
            memory = _gathered(memory, view)
        if not due:
            return memory, make_choice(view.target)
        memory, choice = self.policy.decide(memory, view if alone else _seen(memory, view))
        begun = {} if alone else dict.fromkeys(SUMS, np.zeros(view.runs))
        return {**memory, **begun, "paced_at": np.full(view.runs, view.now_s)}, choice


def _gathered(memory: Memory, view: View) -> Memory:
    """With one more look: rates and shares weigh as long as they lasted."""
    sums = {f"paced_{field}": memory[f"paced_{field}"] + getattr(view, field) * view.since_s for field in GATHERED}
    ended = np.isfinite(view.batch_s)
    return {
        **memory, **sums,
        "paced_batch_s": memory["paced_batch_s"] + np.where(ended, view.batch_s, 0.0),
        "paced_batches": memory["paced_batches"] + ended,
        "paced_seconds": memory["paced_seconds"] + view.since_s,
    }  # fmt: skip


def _seen(memory: Memory, view: View) -> View:
    """The newest look with the means since the last decision."""
    seconds, batches = memory["paced_seconds"], memory["paced_batches"]
    means: dict[str, Any] = {field: memory[f"paced_{field}"] / seconds for field in GATHERED}
    batch_s = np.where(batches > 0, memory["paced_batch_s"] / np.maximum(batches, 1), np.nan)
    return replace(view, since_s=float(seconds[0]), batch_s=batch_s, **means)
