"""A policy for `simulate` whose runs are jobs of pools: each job's policy says what it wants, a rule what it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice
from models.policy.core.policy import Policy, decide
from models.policy.core.view import View
from models.pool.late import late_seconds
from models.pool.wants import Want, executors_needed
from models.twin.pool.rules import DivisionRule


@dataclass(frozen=True)
class SharedJobs:
    """The runs of one pool.

    Attributes:
        names: of its jobs, a run each, which follow one another.
        rule: by which it is divided.
    """

    names: tuple[str, ...]
    rule: DivisionRule


@dataclass(frozen=True, eq=False)
class Pooled:
    """Policies whose executors come from pools.

    Attributes:
        policy: of all runs.
        pools: in the order of the runs.
        target_s: of the latency, seconds.
        lead_s, hold_s: seconds that are planned for.
        budget: share of the seconds that may be late.
        window_days: of the promise.
        cores: of an executor.
    """

    policy: Policy
    pools: Sequence[SharedJobs]
    target_s: float
    lead_s: float
    hold_s: float
    budget: float
    window_days: float
    cores: int = 1

    @property
    def name(self) -> str:
        """Name of the policy that says what is wanted."""
        return self.policy.name

    def fresh(self, runs: int) -> Any:
        """Return the policy's memory, that of every pool, and no late seconds."""
        return {
            "policy": self.policy.fresh(runs),
            "pools": [one.rule.fresh() for one in self.pools],
            "late_s": np.zeros(runs),
        }

    def decide(self, memory: Any, view: View) -> tuple[Any, Choice]:
        """Return what is remembered, and what each run's pool gives it of what it wants."""
        inner, choice = decide(self.policy, memory["policy"], view)
        late_s = memory["late_s"] + np.nan_to_num(view.late_s)
        allowed = self.budget * self.window_days * DAY_S
        expected = late_seconds(view, self.target_s, self.lead_s, self.hold_s)
        running = np.maximum(view.executors - view.leaving, 0.0)
        pools, given, first = [], [], 0
        for one, kept in zip(self.pools, memory["pools"], strict=True):
            wants = {
                name: Want(
                    name, view.now_s, int(choice.target[run]), int(running[run]), self.cores, int(view.least[run]),
                    tuple(expected[run].tolist()), 1 - float(late_s[run]) / allowed, needed=_needed(choice, view, run),
                )
                for run, name in enumerate(one.names, first)
            }  # fmt: skip
            after, granted = one.rule.cut(kept, wants, view.now_s)
            pools.append(after)
            given += [granted[name] for name in one.names]
            first += len(one.names)
        asked = np.maximum(choice.target, view.target)  # what nobody asks for yet starts no executor
        target: Floats = np.maximum(np.minimum(np.array(given, float), asked), view.least)
        return {"policy": inner, "pools": pools, "late_s": late_s}, replace(choice, target=target)


def _needed(choice: Choice, view: View, run: int) -> int:
    return executors_needed(float(choice.observed[run]), float(choice.forecast[run]), float(view.most[run]))
