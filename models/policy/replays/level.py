"""How much of what is left over a replay has: half at first, nearly all once live records have borne it.

Where they did not bear it, it has less of that, and comes back slowly. The price of a broken limit (eq. 3.5 of the
unified batch-stream runtime paper) does not do this here: the queue of its model serves a job's records within
milliseconds, so that a limit of seconds is far away, whatever the replay's rate, and its clipped slope is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from models.contract.service_rate import CERTAIN
from models.contract.state import ControllerState
from models.contract.terms import Terms
from models.policy.replays.start import is_in_slow_start

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
LESS, MORE, LEAST_SHARE = 0.75, 0.05, 0.05
"""What a broken limit leaves of a replay's share of what is left over; by how much that rises after each quiet interval
that was borne; and the least that it falls to: without a record nobody can tell what live records bear."""
AFTER_RELIEF = 0.5
"""What the ladder of relief leaves of that share: a replay that stopped does not come back as fast as it was."""
LIMIT = 1.0
"""Ratio of a signal to its limit above which that is broken. The controller prices it from HEAD on, but a day's peak
alone may come that near: what fell by a price would be least when live records wait the longest anyway."""


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
    return min(level + LEVEL_STEP, MOST_LEVEL) if _was_borne(worst, replays, state) else level


def next_share(
    share: float | None, left_rps: float, worst: float | None, replays: Iterable[Mapping[str, Any]],
    before: ControllerState, after: ControllerState,
) -> float | None:  # fmt: skip
    """Return the most of what is certainly left over that a replay has in the next interval; None: all of it.

    After an interval in which a limit was broken beside a replay that reads it is LESS of what it had, or of the half
    that it begins with if it had not come to that; when the ladder of relief is entered, AFTER_RELIEF. It rises by MORE
    after each interval that was quiet and borne, until it is all again.

    Args:
        share: of this interval.
        left_rps: that is certainly left over, records/s.
        worst: as `next_level`.
        replays: as `next_level`.
        before: the controller, before this interval was closed.
        after: the same, afterwards.
    """
    replays, rate, had = list(replays), before.controls.replay_rps, share
    beside = rate > 0 and bool(_that_read(replays))  # else it was not their doing
    if had is None:
        had = min(max(rate / left_rps, share_of_left(CERTAIN)), 1.0) if left_rps > 0 else 1.0
    if after.relief.step:
        return max(AFTER_RELIEF * had, LEAST_SHARE) if beside and not before.relief.step else share
    if is_broken(worst):
        return max(LESS * had, LEAST_SHARE) if beside else share
    if share is None or not _was_borne(worst, replays, after):
        return share
    return share + MORE if share + MORE < share_of_left(MOST_LEVEL) else None


def _that_read(replays: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that read, and whose first batch is over: what that costs says nothing of a rate."""
    return [one for one in replays if one["state"] == "running" and (one.get("warm") or not is_in_slow_start(one))]


def _was_borne(worst: float | None, replays: Iterable[Mapping[str, Any]], state: ControllerState) -> bool:
    """Whether live records were well within every limit beside replays that were let read at the decided rate."""
    reading = _that_read(replays)
    admitted = math.fsum(one.get("admitted_rps") or 0.0 for one in reading)
    quiet = worst is not None and worst <= QUIET
    return quiet and bool(reading) and admitted >= BORNE * state.controls.replay_rps


def share_of_left(level: float) -> float:
    """Return the share of what is certainly left over at a level that a replay has at least."""
    return AT_LEAST + level


def levels() -> list[float]:
    """Return the levels from CERTAIN to MOST_LEVEL, one for each interval, where all of these are quiet."""
    steps = math.ceil((MOST_LEVEL - CERTAIN) / LEVEL_STEP - 1e-9)
    return [min(CERTAIN + step * LEVEL_STEP, MOST_LEVEL) for step in range(steps + 1)]


def most_admitted(
    share: float | None, left_rps: float, worst: float | None, state: ControllerState
) -> float | None:  # fmt: skip
    """Return the most records/s that replays have by what live records bore; None: nothing bounds them.

    Args:
        share: as `next_share`.
        left_rps: as `next_share`.
        worst: as `raise_to`. As long as a limit is broken, nothing rises above LEAST_SHARE.
        state: of the controller, so far.
    """
    bounds = [] if share is None else [share * max(left_rps, 0.0)]
    bounds += [max(state.controls.replay_rps, LEAST_SHARE * left_rps)] if is_broken(worst) else []
    return min(bounds, default=None)


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
        worst: largest ratio of a signal to its limit, as measured last: of batches that take longer than an interval,
            not every one has an end. None: never.
    """
    least = min(share_of_left(level) * left_rps, terms.controls.replay_rps.max)
    if state.relief.step or is_broken(worst) or least <= state.controls.replay_rps:
        return state
    return replace(state, controls=replace(state.controls, replay_rps=least))
