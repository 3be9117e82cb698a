"""The trained agent as a policy, inside bounds that it cannot leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from models.dqn.agent.actions import advise, allowed, floor, moved, near_advice, nearest, violation_cost_at
from models.dqn.agent.model import DqnModel
from models.dqn.agent.observation import FEATURES, Facts, fresh, observe, pace_for
from models.policy.core.view import Choice, Floats, Memory, View, flags
from models.policy.planners.mpc import Mpc

_HEARD = FEATURES.index("heard")
_LATE_S = 1e-6
_SLOWEST = 15
"""Times the pace: a job that is looked at less often is taken for one with this pace."""


@dataclass(frozen=True, eq=False)
class Dqn:
    """The agent of the source paper's Algorithm 1, with the forecast in its state.

    `mpc` advises it at the same price. Whatever the agent says, the target stays within the job's bounds, departs from
    the advice by no more than `actions.REACH` (or comes as near to it as a move goes), and is never below what the
    observed rate needs. Where the observation is unlike anything it was trained on, the baseline decides, and
    `Why.UNFAMILIAR` says so.
    It decides every `pace_s`; between two decisions only the floor moves the target.

    Attributes:
        agent: what was learned.
        baseline: whose plan it sees.
        lead_s, latency_s: of the job.
        pace_s: seconds between two decisions.
        violation_cost: decimal logarithm of the price of a second over the target (`reward.executor_seconds`); what a
            sweep passes through evenly changes executors and violation evenly.
        utilisation, hold_s: of the baseline.
        margin: added to the agent's own; with `trial.MARGINS[-1]` it does what it is advised.
        name: dqn.
    """

    agent: DqnModel
    baseline: Mpc
    lead_s: float
    latency_s: Floats | float
    pace_s: float
    violation_cost: Floats | float
    utilisation: Floats | float
    hold_s: float
    margin: Floats | float = 0.0
    name: str = "dqn"
    knob: ClassVar[str] = "violation_cost"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: object) -> Dqn:
        """With the contract's times, and the price at which the agent kept the contract's error budget when tried.

        Raises:
            SettingsError: no agent was given.
        """
        if not isinstance(learned, DqnModel):
            raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
        planning = contract.planning
        baseline = Mpc.of("mpc", contract)
        return cls(
            learned, baseline, max(planning.lead_s, 1.0), contract.latency_target_s,
            pace_for(planning.lead_s, 1.0), float(np.log10(learned.price_for(contract.error_budget))),
            baseline.utilisation, baseline.hold_s, name=name,
        )  # fmt: skip

    def fresh(self, runs: int) -> Memory:
        """Nothing seen, nothing decided."""
        return {**self.baseline.fresh(runs), **fresh(runs), "dqn_at": np.full(runs, -np.inf)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """The best move near the advised one where a decision is due, never below the floor."""
        price = 10.0 ** np.broadcast_to(np.asarray(self.violation_cost, float), (view.runs,))
        baseline = replace(
            self.baseline, violation_cost=violation_cost_at(price), utilisation=self.utilisation, hold_s=self.hold_s
        )
        memory, bottom, passed = dict(memory), floor(view, baseline.busy), view.now_s - memory["dqn_at"][0]
        if passed < self.pace_s - _LATE_S:
            unsaid = np.full(view.runs, np.nan)
            return memory, Choice(np.maximum(view.target, bottom), flags(backlog=view.target < bottom), bottom, unsaid)
        pace_s = min(max(passed, self.pace_s), _SLOWEST * self.pace_s) if np.isfinite(passed) else self.pace_s
        advised, advice = advise(baseline, _part(memory, "plan_"), view)
        facts = Facts(self.lead_s, self.latency_s, price, pace_s)
        remembered, seen = observe(_part(memory, "obs_"), view, facts, advice)
        memory |= advised | remembered | {"dqn_at": np.full(view.runs, view.now_s)}
        mask = near_advice(allowed(view.target, view.least, view.most), view.target, advice)
        moves = self.agent.moves(seen, price, mask, nearest(mask, view.target, advice.target), self.margin)
        strange = self.agent.familiar.strange(seen.astype(float))
        target = np.where(strange, np.maximum(advice.target, bottom), moved(view, moves, bottom))
        ahead = (target > view.target) & (bottom <= view.target) & (seen[:, _HEARD] > 0)
        why = np.where(strange, advice.why, 0) | flags(unfamiliar=strange, forecast=ahead)
        return memory, Choice(target, why, bottom, advice.plan)


def maker(agent: DqnModel) -> Callable[[str, Contract], Dqn]:
    """The agent as the catalogue takes it: what builds its policy from a name and a contract."""
    return partial(Dqn.of, learned=agent)


def _part(memory: Memory, begins: str) -> Memory:
    return {name: value for name, value in memory.items() if name.startswith(begins)}
