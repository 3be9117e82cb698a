"""The state of the contract's controller, carried over a contract that has changed and a clock that was set back."""

from __future__ import annotations

from dataclasses import replace

from models.contract.signals import SharedPlan
from models.contract.slow.response import Response
from models.contract.state import ControllerState, begin
from models.contract.terms import Terms


def carry_over(state: ControllerState, before: Terms, terms: Terms, plan: SharedPlan, now_s: float) -> ControllerState:
    """Return the state with which a changed contract goes on; one whose intervals have another length begins anew.

    A limit that is no more has no price: nothing would lower it. What was learned in shares of the limits before is
    forgotten.

    Args:
        state: so far.
        before: the contract until now.
        terms: from now on.
        plan: of the operators.
        now_s: epoch seconds.
    """
    if before.interval_s != terms.interval_s:
        return begin(terms, plan, now_s)
    gone = {path.name for path in before.paths} - {path.name for path in terms.paths}
    prices = {name: nu for name, nu in state.multipliers.items() if name not in gone}
    return replace(state, multipliers=prices, response=Response())


def with_clock_set_back(state: ControllerState, terms: Terms, now_s: float) -> ControllerState:
    """Return the state to go on with where the clock was set back: else the rate would stand until it has caught up."""
    ahead_s = state.began_s + state.interval * terms.interval_s - now_s
    return replace(state, began_s=now_s - state.interval * terms.interval_s) if ahead_s > terms.interval_s else state
