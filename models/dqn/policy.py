"""The trained agent as a policy, inside bounds that it cannot leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from models.dqn.actions import allowed, best, floor, moved
from models.dqn.agent import Agent
from models.dqn.observation import Facts, fresh, observe, pace_for
from models.policy.planner import Planner
from models.policy.view import Choice, Floats, Memory, View, flags

_LATE_S = 1e-6
_SLOWEST = 15
"""Times the pace: a job that is looked at less often is taken for one with this pace."""


@dataclass(frozen=True, eq=False)
class Dqn:
    """The agent of the source paper's Algorithm 1, with the forecast in its state.

    Whatever it says, the target stays within the job's bounds and is never below what the observed rate needs. Where
    the observation is unlike anything it was trained on, the reactive planner answers, and `Why.UNFAMILIAR` says so.
    It decides every `pace_s`; between two decisions only the floor moves the target.

    Attributes:
        agent: what was learned.
        fallback: who answers instead.
        lead_s, latency_s: of the job.
        pace_s: seconds between two decisions.
        caution: decimal logarithm of the price of a second over the target (`reward.executor_seconds`); what a sweep
            passes through evenly changes executors and violation evenly.
        name: dqn.
    """

    agent: Agent
    fallback: Planner
    lead_s: float
    latency_s: Floats | float
    pace_s: float
    caution: Floats | float
    name: str = "dqn"
    knob: ClassVar[str] = "caution"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: object) -> Dqn:
        """With the contract's times, and the price at which the agent kept the contract's error budget when tried.

        Raises:
            SettingsError: no agent was given.
        """
        if not isinstance(learned, Agent):
            raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
        planning = contract.planning
        return cls(
            learned, Planner.of("reactive", planning), max(planning.lead_s, 1.0), contract.latency_target_s,
            pace_for(planning.lead_s, 1.0), float(np.log10(learned.price_for(contract.error_budget))), name,
        )  # fmt: skip

    def fresh(self, runs: int) -> Memory:
        """Nothing seen, nothing decided."""
        return {**self.fallback.fresh(runs), **fresh(runs), "dqn_at": np.full(runs, -np.inf)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """The best allowed move where a decision is due, never below the floor."""
        memory = dict(memory)
        after, safe = self.fallback.decide({k: v for k, v in memory.items() if k.startswith("need")}, view)
        memory |= after
        bottom = floor(view)
        unsaid = np.full(view.runs, np.nan)
        if view.now_s - memory["dqn_at"][0] < self.pace_s - _LATE_S:
            return memory, Choice(np.maximum(view.target, bottom), flags(backlog=view.target < bottom), bottom, unsaid)
        passed = view.now_s - memory["dqn_at"][0]
        pace_s = min(max(passed, self.pace_s), _SLOWEST * self.pace_s) if np.isfinite(passed) else self.pace_s
        price = 10.0 ** np.broadcast_to(np.asarray(self.caution, float), (view.runs,))
        facts = Facts(self.lead_s, self.latency_s, price, pace_s)
        seen_memory, seen = observe({k: v for k, v in memory.items() if k.startswith("obs_")}, view, facts)
        memory |= seen_memory
        memory["dqn_at"] = np.full(view.runs, view.now_s)
        worth = self.agent.values(seen)
        moves = best(worth[:, :, 0] + price[:, None] * worth[:, :, 1], allowed(view.target, view.least, view.most))
        strange = self.agent.familiar.strange(seen.astype(float))
        target = np.where(strange, safe.target, moved(view, moves))
        why = np.where(strange, safe.why, 0) | flags(unfamiliar=strange)
        return memory, Choice(target, why, bottom, unsaid)
