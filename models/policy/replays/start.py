"""When a replay begins and goes on beside live records: not when little is left over, and then not from nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.contract.controller import admitted_now
from models.contract.signals import SharedPlan, Signals, clean_signals
from models.contract.state import ControllerState
from models.contract.terms import Terms
from tidecast.replay.pace import SLOW_START_S

FREE = 0.5
"""Share of what the executors certainly serve that is to be left over when a replay begins: for its first batch the
driver makes a plan and executors load classes, which held live records up for 12 s on two cores, at the peak and in the
valley; where more is left over fewer wait."""
GOING_FREE = 0.1
"""The same for one that has begun: a batch takes seconds of executors beside its records, and at a low rate these took
two executors of four from live records."""
NEAR = 0.9
"""Share of what is left at the calmest time that is forecast from which on it is not waited for."""


def certainly_left(terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals) -> float | None:
    """Return the replayed records/s that executors certainly serve beyond live records and the margin (eq. 3.4).

    It is what an interval that is closed now admits (`controller.close_interval`). None where none is to be closed, and
    where no live rate was ever read.

    Args:
        terms: the contract.
        plan: of the operators.
        state: of the controller, so far.
        signals: measured up to now.
    """
    seen = clean_signals(signals)
    live_rps = state.live_rps if seen.live_rps is None else seen.live_rps
    if live_rps is None or state.interval_at(seen.time_s, terms.interval_s) <= state.interval:
        return None
    most_live = replace(seen, live_rps=max(live_rps, seen.live_high_rps or 0.0))
    left = admitted_now(terms, plan, state, most_live)
    return left if left < math.inf else None


def share_to_be_left(replay: Mapping[str, Any]) -> float:
    """Return the share of what executors certainly serve that is to be left over: GOING_FREE once begun, else FREE.

    One whose first batch was run dry, which takes the worst from it, begins as soon as that where nothing tells that it
    can wait: it is to be done as soon as possible, or its schedule asks for executors by now. Else it waits as its plan
    does (`models.backfill.futures`): small batches at a day's peak, all in vain, held two live batches up for twice
    their time.

    Args:
        replay: fields of a `tidecast.orders.ReplayProgress`.
    """
    if replay["done"] or replay.get("rows") or replay["state"] == "running":
        return GOING_FREE
    can_wait = replay.get("executors") == 0  # None: it has no schedule
    return GOING_FREE if replay.get("warm") and not can_wait else FREE


def is_in_slow_start(replay: Mapping[str, Any]) -> bool:
    """Return whether a replay has its slow start, by its agent's clock.

    Args:
        replay: fields of a `tidecast.orders.ReplayProgress`.
    """
    since = replay.get("reading_since")
    return (
        replay["state"] in ("waiting", "running") and since is not None and (replay["wall_time"] - since < SLOW_START_S)
    )


def is_enough(
    share: float, left_rps: float, certain_rps: float, high_rps: float, lowest_ahead_rps: float | None
) -> bool:
    """Return whether a replay may read now: a share of what is certain is left, or no much better time is to come.

    Args:
        share: of `certain_rps`, as of `share_to_be_left`.
        left_rps: what is certainly left, in live records/s.
        certain_rps: what the executors certainly serve, live records/s.
        high_rps: the most live records/s of the next interval.
        lowest_ahead_rps: the same of the calmest time that is forecast; None: nothing is.
    """
    if left_rps >= share * certain_rps or lowest_ahead_rps is None:
        return True
    return left_rps > 0 and left_rps >= NEAR * (left_rps + high_rps - lowest_ahead_rps)
