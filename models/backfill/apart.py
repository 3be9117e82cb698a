"""A backfill in an application of its own: how many executors it takes, when it is done, and what that costs.

Nothing is shared with the live job: no idle executor of it is used, none of its records has to be minded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.backfill.finish import HOUR_S, FinishTimes
from models.backfill.given import ReplayWork
from models.backfill.plan import Surroundings
from models.policy.core.capacity import Floats

DRIVER = 1
"""Executors as which its driver counts."""


@dataclass(frozen=True, eq=False)
class ApartPlan:
    """An application that is begun at once.

    Attributes:
        work: to do.
        executors: of it, the fewest that are done in time so surely.
        finish: when it is done, seconds from now.
        hours: executor-hours from its start to its end, the driver's among them, mean.
    """

    work: ReplayWork
    executors: int
    finish: FinishTimes
    hours: float


def plan_apart(
    work: ReplayWork, by_s: float, around: Surroundings, sure: float, worth: Floats, start_s: float,
    most_rps: float | None = None,
) -> ApartPlan | None:  # fmt: skip
    """Return the application with the fewest executors that is done by a deadline with a probability; None: none is.

    With more executors it is done sooner and costs more: each of them starts, and the last ones are worth less.

    Args:
        work: records, and their cost.
        by_s: seconds from now.
        around: of the live job: what a slot serves.
        sure: probability, in (0, 1).
        worth: (N + 1,) slots that 0 to N executors are worth, the most that it may have.
        start_s: from its start until its executors work.
        most_rps: replayed records/s that it was ordered to have at most; None: no bound.
    """
    slot_rps = _slot_rps(work, around)
    for executors in range(1, len(worth)):
        took_s = _took_s(work, worth[executors] * slot_rps, start_s + around.published_s, most_rps)
        finish = FinishTimes(np.sort(took_s))
        if finish.chance(by_s) >= sure:
            return ApartPlan(work, executors, finish, (executors + DRIVER) * float(took_s.mean()) / HOUR_S)
    return None


def soonest_apart(
    work: ReplayWork, around: Surroundings, worth: Floats, start_s: float, most_rps: float | None = None
) -> FinishTimes:
    """Return when an application with the most executors is done; arguments as of `plan_apart`."""
    idle_s = start_s + around.published_s
    return FinishTimes(np.sort(_took_s(work, worth[-1] * _slot_rps(work, around), idle_s, most_rps)))


def _slot_rps(work: ReplayWork, around: Surroundings) -> Floats:
    """(S,) replayed records/s of a slot, without the part that live records would leave idle."""
    futures = around.futures(work)
    return futures.slot_rps / (1 - around.promise.idle) / futures.cost


def _took_s(work: ReplayWork, rps: Floats, idle_s: float, most_rps: float | None) -> Floats:
    """(S,) seconds from its start to its end, of which it reads nothing for `idle_s`."""
    return idle_s + work.records / (rps if most_rps is None else np.minimum(rps, most_rps))
