"""A contract proposed for a job: the promise that it keeps as it is, or the nearest one that holds in its twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from configs.contract import Contract
from models.policy.core.capacity import Floats
from models.twin.advice.serve import KEPT, hear_last_value
from models.twin.contract.kept import round_up
from models.twin.contract.tried import ContractOutcome, try_contracts
from models.twin.sim.given import Foresight
from models.twin.sim.job import TwinError, TwinJob, stack

STEPS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
"""Factors by which the latency target, or the ceiling of executors, is raised in turn until the promise is kept."""
QUIET = 0.05
"""Quantile of the minutes' rates for which the fewest executors are."""

Stated = Mapping[str, Any]
"""What a contract's file states, by key."""


@dataclass(frozen=True, eq=False)
class ProposedContract:
    """A contract that holds in a job's twin (`holds`).

    Attributes:
        stated: what its file says.
        outcome: of the job's load under it.
        tried: how many contracts were.
    """

    stated: Stated
    outcome: ContractOutcome
    tried: int


def propose_contract(
    draft: Stated, twin: TwinJob, arrived: Floats, report: Callable[[ContractOutcome], None] = lambda outcome: None
) -> ProposedContract:
    """Find the contract nearest to a draft that holds in the job's twin over a load, under the shipped policy.

    A steered policy uses what may be late, so that over days its account settles near the budget; over hours it swings
    by as much as `KEPT`, which is therefore to be spared over less than a day (`allowed_late`). Target and ceiling are
    raised by the same factor in turn, one of the two at a time; a longer target goes before a higher ceiling, as it
    costs nothing. Executors for which there are no tasks are not tried.

    Args:
        draft: what was observed: the promise that is kept now, and the executors that were there.
        twin: fitted to the job.
        arrived: (T + 1,) records before each second, never falling.
        report: called with the outcome of each contract that was tried.

    Raises:
        TwinError: none of them holds, or there is too little load for a forecast at the draft's lead time.
    """
    ahead = hear_last_value(arrived, Contract.model_validate(draft))
    latest: list[ContractOutcome] = []
    for stated, outcome in _outcomes(draft, twin, arrived, ahead):
        latest.append(outcome)
        report(outcome)
        if holds(outcome):
            return ProposedContract(stated, outcome, len(latest))
    best = min(latest, key=lambda one: one.late_share)
    raise TwinError(
        f"no contract of {len(latest)} holds in the twin: {best.late_share:.2%} of the seconds are late at "
        f"{best.contract.latency_target_s:g} s with {best.contract.executors.max} executors at most, and "
        f"{allowed_late(best):.2%} may be. Allow more by --error-budget, or make the batches quicker first"
    )


def holds(outcome: ContractOutcome) -> bool:
    """Return whether a contract holds: the promise is kept over the load, and with something to spare over hours."""
    return outcome.late_share <= allowed_late(outcome)


def allowed_late(outcome: ContractOutcome) -> float:
    """Return the share of late seconds up to which a contract holds over a load of this length."""
    return outcome.contract.error_budget / (KEPT if outcome.seconds < DAY_S else 1.0)


def _outcomes(
    draft: Stated, twin: TwinJob, arrived: Floats, ahead: Foresight
) -> Iterator[tuple[Stated, ContractOutcome]]:
    """The draft and what is further from it, each with what it comes to, tried no sooner than it is asked for.

    Where the draft does not hold, all longer targets are tried at once, side by side.
    """
    every = list(_candidates(draft, twin))
    longer = [at for at, stated in enumerate(every) if at and stated["executors"] == draft["executors"]]
    known: dict[int, ContractOutcome] = {}
    for at, stated in enumerate(every):
        if at not in known:
            places = longer if at in longer else [at]
            contracts = [Contract.model_validate(every[place]) for place in places]
            known |= dict(zip(places, try_contracts(contracts, twin, arrived, ahead), strict=True))
        yield stated, known[at]


def _candidates(draft: Stated, twin: TwinJob) -> Iterator[Stated]:
    """The draft, then what is a step further from it at a time."""
    yield draft
    most, cores = draft["executors"]["max"], draft["executors"]["cores"]
    useful, tried = math.ceil(twin.tasks / cores), most
    for step in STEPS:
        yield {**draft, "latency_target_s": round_up(step * draft["latency_target_s"])}
        more = min(math.ceil(step * most), max(useful, most))
        if more > tried:
            tried = more
            yield {**draft, "executors": {**draft["executors"], "max": more}}


def fewest_executors(twin: TwinJob, arrived: Floats, batch_s: float, most: int) -> tuple[int, float]:
    """Return the fewest executors that a job's quiet minutes need, and their rate.

    Args:
        twin: fitted to the job.
        arrived: (T + 1,) records before each second; a minute at least.
        batch_s: seconds that batches should take.
        most: executors, no more of which are returned.

    Returns:
        Executors, at least 1, that sustain the `QUIET` quantile of the minutes' rates; and that, records/s.
    """
    quiet_rps = float(np.quantile(np.diff(arrived[::60]) / 60, QUIET))
    capacity = stack([replace(twin, least=1, most=most)]).capacity(batch_s)
    found, _ = capacity.executors_for(np.array([quiet_rps]), np.ones(1), np.full(1, float(most)))
    return int(found[0]), quiet_rps
