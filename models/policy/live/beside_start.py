"""Whether a batch ran beside the start of an executor that takes its cores: it tells of that, not of the job."""

from __future__ import annotations

from configs.contract import Contract
from models.policy.live.learned_lead import LearnedLead, lead_quantiles, without_overdue
from models.policy.live.standing import Standing
from models.policy.planners.turns import quiet_s


def is_beside_start(
    standing: Standing | None, since_s: float, known: LearnedLead | None, executors: int, contract: Contract
) -> bool:
    """Return whether executors were starting on the same computer when a batch ended.

    So they are from the request on: until they register, their JVMs and Pythons take the batch's cores. Those that do
    not come count for the lead time of a job as busy as is aimed for.

    Args:
        standing: the decision written last; None before the first.
        since_s: seconds from the last raise of what is asked for to the batch's end; below 0: none before it.
        known: what raises told of the lead time; None before any.
        executors: that the batch ran on.
        contract: of the job; its lead time and growth are what is believed before any raise.
    """
    if standing is None or standing.executors <= executors or since_s < 0:
        return False
    lead = lead_quantiles(without_overdue(known), contract, contract.planning.utilisation)
    return since_s < quiet_s(lead["planned_s"], lead["growth"])
