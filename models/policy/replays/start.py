"""When a replay begins and goes on beside live records: not when little is left over, and then not from nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from models.contract.controller import close_interval
from models.contract.service_rate import CERTAIN
from models.contract.signals import SharedPlan, Signals
from models.contract.state import ControllerState
from models.contract.terms import Terms

FREE = 0.5
"""Share of what the executors certainly serve that is to be left over when a replay begins: for its first batch the
driver makes a plan and executors load classes, which held live records up for 12 s on two cores, at the peak and in the
valley; where more is left over fewer wait."""
GOING_FREE = 0.1
"""The same for one that has begun: a batch takes seconds of executors beside its records, and at a low rate these took
two executors of four from live records."""
SLOW_START_S = 30.0
"""Seconds that a plan counts for a replay's first batch, the small ones by which it finds out what one may hold, and
until live records have borne it: in them next to nothing is read. On two cores 1,312 records were read in 52 s, which
later took 21 s."""
NEAR = 0.9
"""Share of what is left at the calmest time that is forecast from which on it is not waited for."""
LEVEL_STEP, MOST_LEVEL = 0.15, 0.5
"""By how much the quantile of capacity that a replay goes by rises after each quiet interval, and how far: to the
median, in three. How much is left beside live batches no live batch tells; live records' own latency does."""
QUIET = 0.95
"""Ratio of the worst signal to its limit up to which an interval is quiet. Not where the controller's price begins
(0.9): a limit that was set near what live records alone come to would be met there by chance in every other one."""
BORNE = 0.5
"""Share of the decided rate that replays are admitted at least where live records are said to have borne it."""
AT_LEAST = 0.45
"""Share of what is certainly left over that a replay has at least, as long as every limit is kept, and the level of
what is taken for certain beyond it: half at first, nearly all once live records have borne it."""
LIMIT = 1.0
"""Ratio of a signal to its limit above which that is broken. The controller prices it from HEAD on, but a day's peak
alone may come that near: what fell by a price would be least when live records wait the longest anyway."""


def certainly_left(terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals) -> float | None:
    """Return the replayed records/s that executors certainly serve beyond live records and the margin (eq. 3.4).

    None where no interval is to be closed, and where no live rate was ever read.

    Args:
        terms: the contract.
        plan: of the operators.
        state: of the controller, so far.
        signals: measured up to now.
    """
    closed = close_interval(terms, plan, state, signals)
    if closed.state.interval == state.interval or closed.state.live_rps is None:
        return None
    left: float | None = closed.line["limits"].get("admission")
    return left


def enough_for(replay: Mapping[str, Any]) -> float:
    """Return the share of what executors certainly serve that is to be left over: GOING_FREE once begun, else FREE.

    One whose first batch was run dry is as good as begun.

    Args:
        replay: fields of a `tidecast.orders.ReplayProgress`.
    """
    if replay["done"] or replay.get("rows") or replay["state"] == "running" or replay.get("warm"):
        return GOING_FREE
    return FREE


def begins(replay: Mapping[str, Any]) -> bool:
    """Return whether a replay has its slow start, by its agent's clock.

    Args:
        replay: fields of a `tidecast.orders.ReplayProgress`.
    """
    since = replay.get("reading_since")
    return (
        replay["state"] in ("waiting", "running") and since is not None and (replay["wall_time"] - since < SLOW_START_S)
    )


def next_level(
    level: float, worst: float | None, replays: Iterable[Mapping[str, Any]], state: ControllerState
) -> float:
    """Return the level of the service rate's quantile that the next interval takes for certain.

    It begins at CERTAIN, and rises where live records were well within every limit beside replays that were let read at
    the decided rate, or near it (an order's own bound may be far below): else nothing was borne. After an interval in
    which a limit was broken it is half as far above CERTAIN, and with relief on the ladder it is CERTAIN. Live records
    go first, so that too high a level costs them little at once.

    Args:
        level: of this interval.
        worst: largest ratio of a signal to its limit; None: unread.
        replays: fields of a `tidecast.orders.ReplayProgress` each.
        state: of the controller, after this interval.
    """
    if state.relief.step:
        return CERTAIN
    if is_broken(worst):
        return (level + CERTAIN) / 2
    quiet = worst is not None and worst <= QUIET
    reading = [one for one in replays if one["state"] == "running" and (one.get("warm") or not begins(one))]
    admitted = math.fsum(one.get("admitted_rps") or 0.0 for one in reading)
    borne = reading and admitted >= BORNE * state.controls.replay_rps
    return min(level + LEVEL_STEP, MOST_LEVEL) if quiet and borne else level


def is_enough(
    share: float, left_rps: float, certain_rps: float, high_rps: float, lowest_ahead_rps: float | None
) -> bool:
    """Return whether a replay may read now: a share of what is certain is left, or no much better time is to come.

    Args:
        share: of `certain_rps`, as of `enough_for`.
        left_rps: what is certainly left, in live records/s.
        certain_rps: what the executors certainly serve, live records/s.
        high_rps: the most live records/s of the next interval.
        lowest_ahead_rps: the same of the calmest time that is forecast; None: nothing is.
    """
    if left_rps >= share * certain_rps or lowest_ahead_rps is None:
        return True
    return left_rps > 0 and left_rps >= NEAR * (left_rps + high_rps - lowest_ahead_rps)


def is_broken(worst: float | None) -> bool:
    """Return whether a limit was broken in an interval: `worst` is the largest ratio to one; None: unread."""
    return worst is not None and worst > LIMIT


def raise_to(
    state: ControllerState, left_rps: float, level: float, terms: Terms, worst: float | None
) -> ControllerState:
    """Return the state from which an interval is closed: its rate is a share of what is certainly left over.

    The controller's own steps are a few hundredths of the box: they are to find what no forecast and no capacity tells.
    Of what both tell, capacity at `level` less the 90 % quantile of live records, half is there at once while that
    level is CERTAIN, and nearly all of it at the median. Where a limit was broken, or the ladder asks for relief, the
    controller's own steps are all there is.

    Args:
        state: of the controller, so far.
        left_rps: as `certainly_left`.
        level: of the quantile that is taken for certain (`next_level`).
        terms: the contract.
        worst: largest ratio of a signal to its limit in the interval that ends; None: unread.
    """
    least = min((AT_LEAST + level) * left_rps, terms.controls.replay_rps.max)
    if state.relief.step or is_broken(worst) or least <= state.controls.replay_rps:
        return state
    return replace(state, controls=replace(state.controls, replay_rps=least))
