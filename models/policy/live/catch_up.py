"""How long a job that is behind takes to catch up, and the executors without which its `rto` is not held.

Unified batch-stream runtime paper, recovery: catch-up = backlog / (mu - lambda), and mu >= lambda + backlog / time
left. Here lambda is the forecast's, step by step, and mu the learned capacity with its spread, from a lead time on
that of the executors asked for, which come in turns where they slow each other's start down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from configs.contract import Contract, Planning
from models.policy.core.backlog import backlog
from models.policy.core.batch_time import BatchTime
from models.policy.core.capacity import Capacity
from models.policy.core.rate_spread import slot_quantile
from models.policy.planners.turns import turns_of
from models.policy.received.observation import Observation

SURE = 0.95
"""Probability with which an `rto` is to be held: of the capacity its quantile from below, of the load the upper one."""
_UPPER = 0.9


@dataclass(frozen=True)
class CatchUp:
    """How long it takes.

    Attributes:
        records: that wait beyond what batches hold.
        median_s, sure_s: wall seconds until they are gone, as likely as not and surely; infinite where they grow.
        rto_s, left_s: seconds from falling behind in which it is to be over, and those that are left; None where the
            contract does not state them.
        executors: that hold it; the most where none do.
        held_s: seconds that it surely takes with these.
    """

    records: int
    median_s: float
    sure_s: float
    rto_s: float | None
    left_s: float | None
    executors: int
    held_s: float


def behind_since(
    before: float | None, now: float, arrival_rps: float, waiting: float, target_s: float, most_s: float = math.inf
) -> float | None:
    """Return since when a job is behind: from when the oldest record waits, once that is longer than its target.

    Args:
        before: what this returned last; it stands until nothing waits.
        now: epoch seconds.
        arrival_rps: records/s.
        waiting: records beyond those that batches hold.
        target_s: of its latency, seconds.
        most_s: that any can have waited: records of a burst came faster than they come now.
    """
    if waiting <= 0:
        return None
    age_s = min(waiting / arrival_rps if arrival_rps > 0 else 0.0, most_s)
    return before if before is not None or age_s <= target_s else now - min(age_s, now)


def find_catch_up(seen: Observation, contract: Contract, capacity: Capacity, executors: int) -> CatchUp | None:
    """Predict how long a job that is behind takes to catch up; None for one that is not, and in logs of before.

    Args:
        seen: the job as observed.
        contract: of the job; an `rto` counts where its section `backpressure` states `recovery`.
        capacity: of this one job, as learned so far.
        executors: that its policy asks for.
    """
    if seen.behind_s is None or seen.scatter is None:
        return None
    waiting = float(backlog(seen.arrival_rps, seen.lag_records, contract.batch_s))
    capacity = replace(capacity, batch_s=max(contract.batch_s, contract.latency_target_s / 2))

    def takes_s(number: int, level: float, of_load: float) -> float:
        factor = slot_quantile(BatchTime.guess(0.0, 1.0), seen.scatter or 0.0, level)
        at_work = [
            (until, factor * float(capacity.sustained_rps(np.array([some]))[0]))
            for until, some in _at_work(seen, contract.planning, number)
        ]
        return _seconds(waiting, at_work, _load(seen, of_load))

    sure_s = takes_s(executors, 1 - SURE, _UPPER)
    recovery = contract.backpressure.recovery if contract.backpressure is not None else None
    rto_s = None if recovery is None else recovery.rto_s
    left_s = None if rto_s is None else max(rto_s - seen.behind_s, 0.0)
    number, held_s = executors, sure_s
    while left_s is not None and held_s > left_s and number < seen.most(contract):
        number += 1
        held_s = takes_s(number, 1 - SURE, _UPPER)
    return CatchUp(math.ceil(waiting), takes_s(executors, 0.5, 0.5), sure_s, rto_s, left_s, number, held_s)


def describe_catch_up(found: CatchUp, executors: int, begun: int | None = None) -> str:
    """Say it in words.

    Args:
        found: what was predicted.
        executors: that the policy asks for.
        begun: that are asked for now, where they start in turns; None: all that hold it.
    """
    text = f"{found.records:,} records wait: caught up {_in(found.median_s)} ({SURE:.0%}: {_in(found.sure_s)})"
    if found.left_s is None or found.sure_s <= found.left_s:
        return text
    more = f"{found.executors - executors} more asked for" if found.executors > executors else "no more can be had"
    holds = found.held_s <= found.left_s
    kept = f"hold it, {_in(found.held_s)}" if holds else f"do not hold it either, {_in(found.held_s)}"
    if begun is not None and begun < found.executors:
        kept = f"{kept}; {found.executors - begun} of them later, as executors start in turns"
    return f"{text}; rto {found.rto_s:g} s, {found.left_s:.0f} s left: {more}, {found.executors} executors {kept}"


def _in(seconds: float) -> str:
    return f"in {seconds:.0f} s" if math.isfinite(seconds) else "never"


def _load(seen: Observation, level: float) -> list[tuple[float, float]]:
    """Until when, wall seconds from now, which load holds; the last one for ever."""
    if seen.ahead is None or not seen.ahead.rps:
        return [(math.inf, seen.arrival_rps)]
    column = min(range(len(seen.ahead.levels)), key=lambda at: abs(seen.ahead.levels[at] - level))  # type: ignore[union-attr]
    steps = [(until, row[column]) for until, row in zip(seen.ahead.offsets_s, seen.ahead.rps, strict=True)]
    return [*steps[:-1], (math.inf, steps[-1][1])]


def _at_work(seen: Observation, planning: Planning, number: int) -> list[tuple[float, float]]:
    """Until when, wall seconds from now, how many executors work on the way to a number of them; the last for ever."""
    missing = number - seen.executors
    turns: tuple[tuple[float, float], ...] = ((float(missing), 1.0),)
    if seen.rto_in_turns and missing > 0:
        turns = turns_of(missing, planning.start_growth, planning.step_up)
    works = [*accumulate((more for more, _ in turns), initial=float(seen.executors))]
    return [*zip([*(leads * planning.lead_s for _, leads in turns), math.inf], works, strict=True)]


def _seconds(waiting: float, at_work: list[tuple[float, float]], load: list[tuple[float, float]]) -> float:
    """Seconds until nothing waits, where capacity and load, records/s, change by steps."""
    at = 0.0
    for until, rate in load:
        for working, capacity in at_work:
            end = min(until, working)
            if end <= at:
                continue
            spare = capacity - rate
            if spare > 0 and waiting <= spare * (end - at):
                return at + waiting / spare
            if math.isinf(end):
                return math.inf
            waiting, at = max(waiting - spare * (end - at), 0.0), end
    return math.inf
