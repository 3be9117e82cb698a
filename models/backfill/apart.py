"""A backfill in an application of its own: how many executors it takes, when it is done, and what that costs.

Nothing is shared with the live job: no idle executor of it is used, none of its records has to be minded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.backfill.finish import HOUR_S, FinishTimes
from models.backfill.given import ReplayWork
from models.backfill.plan import Surroundings

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
    work: ReplayWork, by_s: float, around: Surroundings, sure: float, most: int, start_s: float,
    most_rps: float | None = None,
) -> ApartPlan | None:  # fmt: skip
    """Return the application with the fewest executors that is done by a deadline with a probability; None: none is.

    With more executors it is done sooner and costs more: each of them starts, and the last ones are worth less.

    Args:
        work: records, and their cost.
        by_s: seconds from now.
        around: of the live job: what a slot serves, and what executors are worth.
        sure: probability, in (0, 1).
        most: executors that it may have.
        start_s: from its start until its executors work.
        most_rps: replayed records/s that it was ordered to have at most; None: no bound.
    """
    futures = around.futures(work)
    own_rps = futures.slot_rps / (1 - around.promise.idle) / futures.cost
    for executors in range(1, min(most, len(around.fleet.worth) - 1) + 1):
        rps = around.fleet.worth[executors] * own_rps
        took_s = start_s + work.records / (rps if most_rps is None else np.minimum(rps, most_rps))
        finish = FinishTimes(np.sort(took_s))
        if finish.chance(by_s) >= sure:
            return ApartPlan(work, executors, finish, (executors + DRIVER) * float(took_s.mean()) / HOUR_S)
    return None
