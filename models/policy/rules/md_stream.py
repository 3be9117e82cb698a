"""Md-Stream's rule by the busiest executor (Algorithm 4, repaired): `models.policy.rules.elasticity` on a running job.

An executor is an instance of its job's one operator. The busiest one's share (Orl) is `View.busiest`; where no agent
has told it, and in the twin, whose executors are alike, the share of all. A job is slow (the paper's SL > SL_max) where
more of a window's seconds are late than its promise allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from configs.contract import Contract
from models.policy.core.backlog import backlog
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, make_choice, why_flags
from models.policy.core.policy import Rule
from models.policy.core.view import Memory, View
from models.policy.rules.elasticity import (
    CALM,
    MOST_LOAD,
    SETTLED_S,
    TARGET_LOAD,
    WINDOW_S,
    Elasticity,
    Hysteresis,
    OperatorWindow,
    is_skewed,
    step_share,
)

LATE_S = 1e-6
"""Seconds of tolerance for rounding when a window's end is compared."""


@dataclass(frozen=True, eq=False)
class MdStream(Rule):
    """The rule, at the end of each window; times are wall seconds.

    Attributes:
        target: busy share that a change aims at, a number or one per run.
        budget: share of a window's seconds that may be late before the job is slow.
        window_s: length of a window.
        settled_s: from the first look on, before the first change.
    """

    target: Floats | float = TARGET_LOAD
    budget: float = 0.0
    window_s: float = WINDOW_S
    settled_s: float = SETTLED_S
    knob: ClassVar[str] = "target"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with the contract's error budget; `learned` is ignored."""
        return cls(name, budget=contract.error_budget)

    def fresh(self, runs: int) -> Memory:
        """Return empty sums, with no clock started."""
        never, zero = np.full(runs, np.inf), np.zeros(runs)
        return {
            "seen": np.zeros((runs, 6)), "seen_s": zero, "began": never, "born": never, "low": zero, "cooling": zero,
        }  # fmt: skip

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Keep the target until a window ends; then more executors where the job is slow, or fewer after calm windows.

        More only where the busiest executor is busy for more than 0.875 of the window or more comes than that allows,
        by eq. 18; fewer where it is busy for less than 0.3, not fewer than what comes and waits needs at the target.
        Two windows after a change nothing changes. Both are reckoned from the executors that run, and there are no more
        while any is still to come; after calm windows those are called off, too. Where one executor is full and much
        busier than the mean (one hot key), the reasons say so: the rule adds executors all the same. Where nobody
        counts late seconds the target stays.

        Returns:
            The new memory, and the choice: (runs,) executors within the view's bounds, and reasons (flags).

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        new = np.isinf(memory["began"])
        began, born = (np.where(new, view.now_s, memory[name]) for name in ("began", "born"))
        since_s = np.where(new, 0.0, view.since_s)
        sums, seconds = memory["seen"] + self._weighed(view, since_s, new), memory["seen_s"] + since_s
        due = view.now_s - began >= self.window_s - LATE_S
        window, skewed = self._window(sums, seconds, view)
        acts = due & (view.now_s - born >= self.settled_s) & np.isfinite(sums[:, 4] + sums[:, 5])
        before = Hysteresis(memory["low"], memory["cooling"])
        most = np.where(view.starting > 0, view.ready, view.most)
        after, executors = Elasticity(view.least, most, self.target).decide(before, window)
        changes = acts & (executors != view.ready)
        wanted = np.where(changes, np.clip(executors, view.least, view.most), view.target)
        calm = acts & (after.low >= CALM) & (before.cooling <= 0) & (step_share(window, self.target) <= 0)
        # For those that run it may be no change, as where the fewest do: of those still to come nobody needs any.
        wanted = np.where(calm & (view.starting > 0), np.maximum(view.ready, view.least), wanted)
        full = acts & (window.load > MOST_LOAD)
        why = why_flags(ceiling=full & window.slow & (wanted >= view.most), skew=full & skewed)
        kept = {
            "seen": np.where(due[:, None], 0.0, sums), "seen_s": np.where(due, 0.0, seconds),
            "began": np.where(due, view.now_s, began), "born": born,
            "low": np.where(acts, after.low, before.low), "cooling": np.where(acts, after.cooling, before.cooling),
        }  # fmt: skip
        return kept, make_choice(wanted, why)

    @staticmethod
    def _weighed(view: View, since_s: Floats, new: np.ndarray) -> Floats:
        """(runs, 6) of one more look: rates and shares weigh as long as they lasted, seconds are counted."""
        busiest = np.where(np.isfinite(view.busiest), view.busiest, view.busy)
        shares = np.stack([view.arrival_rps, view.processed_rps, view.busy, busiest], axis=-1) * since_s[:, None]
        counted = np.stack([view.late_s, view.counted_s], axis=-1)
        return np.where(new[:, None], 0.0, np.concatenate([shares, counted], axis=1))

    def _window(self, sums: Floats, seconds: Floats, view: View) -> tuple[OperatorWindow, np.ndarray]:
        """What was seen in a window, and (runs,) whether one executor was much busier than the mean."""
        means = sums[:, :4] / np.where(seconds > 0, seconds, np.nan)[:, None]
        arrival_rps, processed_rps, busy, busiest = means.T
        worked = busy * view.executors
        service_rps = np.where(worked > 0, processed_rps / np.where(worked > 0, worked, 1.0), np.nan)
        waiting = backlog(arrival_rps, view.lag_records, view.capacity.batch_s)
        slow = sums[:, 4] > self.budget * sums[:, 5]
        seen = OperatorWindow(view.ready, arrival_rps, busiest, service_rps, waiting, slow)
        return seen, is_skewed(busiest, busy)
