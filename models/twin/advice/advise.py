"""Advice: every change that may help a job, tried on its own load in its own twin, ranked by what it gains."""

from __future__ import annotations

from dataclasses import dataclass

from configs.contract import Contract
from models.policy.core.capacity import Floats
from models.twin.advice.changes import KINDS, Change, list_changes
from models.twin.advice.facts import Facts
from models.twin.advice.serve import KEPT, Cost, hear_last_value, serve_each
from models.twin.sim.job import TwinJob

LEAST_GAIN = 0.15
"""A change that gains less than this share of the cost is not worth a word."""
AS_GOOD = 1.1
"""Of changes that leave at most this multiple of the cost that the best one leaves, the least work is named first."""


@dataclass(frozen=True)
class Tried:
    """A change and what it came to.

    Attributes:
        change: of the job.
        cost: of serving the load with it.
        gain: share of the present cost, weighed by the promise, that it saves; below 0: it costs more.
    """

    change: Change
    cost: Cost
    gain: float


@dataclass(frozen=True)
class Advice:
    """What would help a job most.

    Attributes:
        now: what the load costs as the job is.
        tried: a change of each kind, the best of its kind, in the order in which they are advised.
        worth: how many of them, from the first on, are worth a word; 0: nothing is to be done.
        budget: share of late seconds that could be promised where no change keeps the promise; None where one does.
    """

    now: Cost
    tried: tuple[Tried, ...]
    worth: int
    budget: float | None

    @property
    def first(self) -> str:
        """The kind of what is advised first: one of `KINDS`, "budget" or "nothing"."""
        if self.worth:
            return self.tried[0].change.kind
        return "nothing" if self.budget is None else "budget"


def choose_advice(job: TwinJob, contract: Contract, arrived: Floats, facts: Facts, tasks: int) -> Advice:
    """Try every change on a job's load, each under the policy `mpc` steered by the contract's promise.

    Every run hears the same forecast, the last value. Another ceiling is tried only where the promise is overspent:
    more executors can do nothing but make less late.

    Args:
        job: the fitted twin.
        contract: of the job, as it is.
        arrived: (T + 1,) records produced before each second, never falling.
        facts: where the time of its batches goes.
        tasks: of the heaviest stage, as reported.

    Raises:
        TwinError: `arrived` falls, is not finite, or is shorter than a look of the policy.
    """
    budget = contract.error_budget
    ahead = hear_last_value(arrived, contract)
    changes = list_changes(job, contract, facts, tasks)
    tried = [one for one in changes if one.kind != "ceiling"]
    now, *costs = serve_each([(job, contract), *((one.job, one.contract) for one in tried)], arrived, ahead)
    if now.late > budget:
        more = [one for one in changes if one.kind == "ceiling"]
        tried, costs = tried + more, costs + serve_each([(one.job, one.contract) for one in more], arrived, ahead)
    best: dict[str, Tried] = {}
    for change, cost in zip(tried, costs, strict=True):
        gain = 1 - cost.weighed(budget) / max(now.weighed(budget), 1e-9)
        if change.kind not in best or gain > best[change.kind].gain:
            best[change.kind] = Tried(change, cost, gain)
    ranked = rank(list(best.values()))
    worth = sum(one.gain >= LEAST_GAIN for one in ranked)
    least = min([now.late, *(one.cost.late for one in ranked)])
    return Advice(now, tuple(ranked), worth, least if least > KEPT * budget else None)


def rank(tried: list[Tried]) -> list[Tried]:
    """Rank by gain, the largest first; of those about as good as the best one, the least work goes first."""
    ordered = sorted(tried, key=lambda one: -one.gain)
    if not ordered:
        return []
    alike = [one for one in ordered if one.gain >= LEAST_GAIN and 1 - one.gain <= AS_GOOD * (1 - ordered[0].gain)]
    first = min(alike or ordered[:1], key=lambda one: KINDS.index(one.change.kind))
    return [first, *(one for one in ordered if one is not first)]
