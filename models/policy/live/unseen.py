"""What a job keeps of executors while it sends no metrics."""

from __future__ import annotations

import math

from configs.contract import Contract
from models.policy.live.learned_lead import lead_quantiles
from models.policy.live.memory import Memory
from models.policy.replays.executors import add_executors, kept_running
from models.policy.replays.relief import keep_for_relief
from models.policy.replays.total import TotalSoFar, begin_in_turns, seconds_since


def running_unseen(memory: Memory) -> int:
    """Return the executors that ran when the job was last seen, without those that were given back since."""
    return kept_running(memory.executors or 0, None if memory.standing is None else memory.standing.executors)


def keep_unseen(memory: Memory, reason: str, contract: Contract, most: int, now: float) -> tuple[int, str]:
    """Return how many executors to ask for while nothing is measured, and why: in all, and in turns where these start.

    Args:
        memory: of a job for which something was decided.
        reason: one line for a person.
        contract: of the job.
        most: that may be asked for.
        now: epoch seconds.
    """
    assert memory.target is not None, "a job for which nothing was decided has nothing to keep"
    replay, standing = memory.replay, None if memory.standing is None else memory.standing.executors
    asked, soon = replay.executors_asked, replay.executors_soon(most)
    wanted, reason = add_executors(memory.target, reason, asked, most, soon, running_unseen(memory))
    wanted, reason = keep_for_relief(wanted, reason, replay, standing, most)
    raised_s = seconds_since(memory.asked_at, now)
    total = TotalSoFar(memory.executors or 0, standing, math.inf if raised_s is None else raised_s)
    lead = lead_quantiles(memory.lead, contract, memory.batches.busy or 0.0)
    planning = contract.planned_for(lead["planned_s"], lead["growth"]).planning
    return begin_in_turns(memory.target, wanted, total, planning), reason
