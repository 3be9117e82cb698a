"""The trained agent as a policy, inside bounds that it cannot leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from configs.contract import Contract
from configs.errors import SettingsError
from models.dqn.agent.actions import (
    advise,
    allowed_moves,
    apply_moves,
    least_executors,
    moves_near_advice,
    nearest_move,
    violation_cost_at,
)
from models.dqn.agent.model import DqnModel
from models.dqn.agent.observation import FEATURES, JobFacts, decision_interval_s, fresh, observe
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, Why, why_flags
from models.policy.core.view import Memory, View
from models.policy.planners.mpc import Mpc

_HEARD = FEATURES.index("heard")
_LATE_S = 1e-6
_SLOWEST = 15
"""Most intervals of `pace_s` that the time since the last decision counts as."""


@dataclass(frozen=True, eq=False)
class Dqn:
    """A DQN policy inside fixed bounds: the agent adjusts what `mpc` advises at the same price.

    Double dueling DQN after Pa-Stream's Algorithm 1, with the forecast in its state. The target stays within the job's
    bounds and within `actions.REACH` of the advice (or as near to it as a move gets), and is raised to what the
    observed rate needs. Where executors start in turns, every raise is made in the baseline's turns. Where the
    observation is outside of what it was trained on, the baseline decides, with `Why.UNFAMILIAR`. It decides every
    `pace_s`; between two decisions only the observed rate raises the target.

    Attributes:
        agent: what was learned.
        baseline: the advising policy.
        lead_s, latency_s: seconds of start-up, and the latency target, of the job.
        pace_s: seconds between two decisions.
        violation_cost: log10 of the price of a second over the target, in seconds of all executors; number or (runs,).
        utilisation, hold_s: of the baseline.
        margin: added to the agent's own margins (`DqnModel.margins`); with 1e9 it does what it is advised.
        name: in the catalogue.
    """

    agent: DqnModel
    baseline: Mpc
    lead_s: float
    latency_s: Floats | float
    pace_s: float
    violation_cost: Floats | float
    utilisation: Floats | float
    hold_s: Floats | float
    margin: Floats | float = 0.0
    name: str = "dqn"
    knob: ClassVar[str] = "violation_cost"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: object) -> Dqn:
        """Build the policy from a contract, at the lowest price at which the agent kept the error budget in its trial.

        Where it never kept it, the highest price tried is taken.

        Args:
            name: in the catalogue of policies.
            contract: the job's latency target, error budget and executor bounds; it also makes the baseline, `mpc`.
            learned: a `DqnModel`.

        Raises:
            SettingsError: `learned` is no agent.
            AgentError: the agent was never tried at any price.
        """
        if not isinstance(learned, DqnModel):
            raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
        planning = contract.planning
        baseline = Mpc.of("mpc", contract)
        return cls(
            learned, baseline, max(planning.lead_s, 1.0), contract.latency_target_s,
            decision_interval_s(planning.lead_s, 1.0), float(np.log10(learned.price_for(contract.error_budget))),
            baseline.utilisation, baseline.hold_s, name=name,
        )  # fmt: skip

    def fresh(self, runs: int) -> Memory:
        """Create the memory of runs in which nothing was observed or decided."""
        return {**self.baseline.fresh(runs), **fresh(runs), "dqn_at": np.full(runs, -np.inf)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return the best move near the advice if `pace_s` has passed; else the target, raised to what the rate needs.

        Args:
            memory: of `fresh` or the last call, for the same runs in the same order; not changed.
            view: of (runs,) jobs, at least one.

        Returns:
            The new memory, and the choice: (runs,) `target` in executors, `why` (flags), `observed` (executors that the
            observed rate needs) and `forecast` (the baseline's plan in executors; NaN between decisions).

        Raises:
            KeyError: a memory without the keys of `fresh`.
            ValueError: the agent was trained on other features.
        """
        price = 10.0 ** np.broadcast_to(np.asarray(self.violation_cost, float), (view.runs,))
        baseline = replace(
            self.baseline, violation_cost=violation_cost_at(price), utilisation=self.utilisation, hold_s=self.hold_s
        )
        memory, bottom, passed = dict(memory), least_executors(view, baseline.busy), view.now_s - memory["dqn_at"][0]
        if passed < self.pace_s - _LATE_S:
            target, waits = _in_turns(baseline, view, np.maximum(view.target, bottom), view.target)
            why = why_flags(backlog=view.target < bottom, turn=waits)
            return memory, Choice(target, why, bottom, np.full(view.runs, np.nan))
        pace_s = min(max(passed, self.pace_s), _SLOWEST * self.pace_s) if np.isfinite(passed) else self.pace_s
        advised, advice = advise(baseline, _part(memory, "plan_"), view)
        facts = JobFacts(self.lead_s, self.latency_s, price, pace_s)
        remembered, seen = observe(_part(memory, "obs_"), view, facts, advice)
        memory |= advised | remembered | {"dqn_at": np.full(view.runs, view.now_s)}
        mask = moves_near_advice(allowed_moves(view.target, view.least, view.most), view.target, advice)
        moves = self.agent.choose_moves(seen, price, mask, nearest_move(mask, view.target, advice.target), self.margin)
        strange = self.agent.familiar.is_unfamiliar(seen.astype(float))
        wanted = np.where(strange, np.maximum(advice.target, bottom), apply_moves(view, moves, bottom))
        target, waits = _in_turns(baseline, view, wanted, advice.target)
        ahead = (target > view.target) & (bottom <= view.target) & (seen[:, _HEARD] > 0)
        # A hold that was advised because a raise has to wait is one that waits, whoever made it.
        waits |= (advice.why & Why.TURN > 0) & (target == view.target)
        why = np.where(strange, advice.why, 0) | why_flags(unfamiliar=strange, forecast=ahead, turn=waits)
        return memory, Choice(target, why, bottom, advice.plan)


def maker(agent: DqnModel) -> Callable[[str, Contract], Dqn]:
    """Return a function that builds the policy from a name and a contract, as the catalogue takes what was learned."""
    return partial(Dqn.of, learned=agent)


def _in_turns(baseline: Mpc, view: View, wanted: Floats, advised: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(runs,) what to ask for on the way to `wanted`, a rise in the baseline's turns; (runs,) whether it waits for one.

    What is `advised` has had its turn, and of a part of it fewer might start at once; neither the agent's move beyond
    it nor the floor has.
    """
    rises = wanted > view.target
    begun = baseline.raise_towards(view, np.maximum(wanted, view.target))
    begun = np.maximum(begun, np.minimum(wanted, advised))
    return np.where(rises, begun, wanted), rises & (begun <= view.target)


def _part(memory: Memory, begins: str) -> Memory:
    return {name: value for name, value in memory.items() if name.startswith(begins)}
