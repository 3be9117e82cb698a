"""The state of the contract's controller, carried over terms that have changed and a clock that was set back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.contract.signals import SharedPlan
from models.contract.slow.response import Response
from models.contract.state import ControllerState, begin
from models.contract.terms import Terms

MOVED = 0.1
"""Share by which what the executors sustain has to move until terms are derived again: by the contract's first guess
alone, a job that serves four times that would be held to a quarter of it for good."""


def carry_over(state: ControllerState, before: Terms, terms: Terms, plan: SharedPlan, now_s: float) -> ControllerState:
    """Return the state with which changed terms go on; with intervals of another length it begins anew.

    A limit that is no more has no price: nothing would lower it. What was learned in shares of the limits before is
    forgotten, where they are others now.

    Args:
        state: so far.
        before: the terms until now.
        terms: from now on.
        plan: of the operators.
        now_s: epoch seconds.
    """
    if before.interval_s != terms.interval_s:
        return begin(terms, plan, now_s)
    gone = {path.name for path in before.paths} - {path.name for path in terms.paths}
    prices = {name: nu for name, nu in state.multipliers.items() if name not in gone}
    kept = (before.paths, before.memory, before.lag) == (terms.paths, terms.memory, terms.lag)
    return replace(state, multipliers=prices, response=state.response if kept else Response())


def have_moved(before: Sequence[float] | None, rates: Sequence[float]) -> bool:
    """Return whether what the executors sustain has moved so far that terms are derived of it again.

    Args:
        before: records/s that were derived of; None: not known.
        rates: the same now.
    """
    return before is None or any(abs(b - a) > MOVED * a for a, b in zip(before, rates, strict=True))


def with_clock_set_back(state: ControllerState, terms: Terms, now_s: float) -> ControllerState:
    """Return the state to go on with where the clock was set back: else the rate would stand until it has caught up."""
    ahead_s = state.began_s + state.interval * terms.interval_s - now_s
    return replace(state, began_s=now_s - state.interval * terms.interval_s) if ahead_s > terms.interval_s else state
