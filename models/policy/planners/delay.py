"""How long planners keep an executor that nobody needs: in windows that last as long as the contract's delay."""

from __future__ import annotations

from configs.contract import Planning
from models.policy.core import window
from models.policy.core.view import Memory


def hold_of(planning: Planning) -> float:
    """Return how long `mpc` drops nothing that one of its plans asked for, in wall seconds."""
    return max(planning.scale_down_delay_s, planning.cooldown_s)


def with_delay(memory: Memory, now_s: float, planning: Planning) -> Memory:
    """Return a policy's memory with windows as long as that planning says; what they hold is kept as if of now.

    Args:
        memory: of any policy; those without such a window carry it on as it is.
        now_s: of the decision, on the policy's clock.
        planning: that the policy is built from.
    """
    for name, seconds in (("plan", hold_of(planning)), ("need", planning.scale_down_delay_s)):
        if f"{name}_period" in memory:
            memory = window.begin_anew(memory, name, now_s, seconds)
    return memory
