"""Several backfills beside one live job: planned one beside the other, and what is left over divided by weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from models.backfill.finish import finish_steps, replayed, taken_by
from models.backfill.futures import Futures
from models.backfill.given import BackfillPlanError, ReplayWork
from models.backfill.plan import SURE, BackfillPlan, DeadlineError, Surroundings, at_once_schedule, describe_schedule
from models.backfill.search import cheapest_schedule
from tidecast.spark.shares import water_fill


class AskedBackfill(NamedTuple):
    """A backfill as asked for: its work, seconds until its deadline, and the probability of meeting it."""

    work: ReplayWork
    by_s: float
    sure: float = SURE


def plan_several(asked: Sequence[AskedBackfill], around: Surroundings) -> list[BackfillPlan]:
    """Plan several backfills, the one with the earliest deadline first; none takes anything from those before it.

    To a later one the earlier ones are what live records are to the first: in every future their executors are held and
    their replay runs, until they are done.

    Args:
        asked: at least one.
        around: forecasts, capacity, executors.

    Returns:
        The plans in the order of `asked`; their extra executors add up.

    Raises:
        DeadlineError: of the first backfill whose deadline cannot be met beside those before it.
        BackfillPlanError: a value out of range.
    """
    plans: dict[int, BackfillPlan] = {}
    taken: Futures | None = None
    for at in sorted(range(len(asked)), key=lambda i: asked[i].by_s):
        work, by_s, sure = asked[at]
        if not 0 < sure < 1:
            raise BackfillPlanError(f"sure={sure}: a probability between 0 and 1 is expected, such as 0.9")
        own = around.futures(work)
        futures = own if taken is None else replace(own, live=taken.live, held=taken.held)
        steps = around.steps_to(by_s)
        found = cheapest_schedule(futures, work.records, steps, sure, around.extra_now if taken is None else 0)
        if found is None:
            every = replayed(futures, at_once_schedule(futures)[0])
            ends = np.sort(finish_steps(every, work.records)) * futures.step_s
            earliest = float(ends[min(int(np.ceil(sure * len(ends))), len(ends)) - 1])
            raise DeadlineError(by_s, sure, earliest, None, around.fleet.most)
        plans[at] = describe_schedule(found, futures, work, by_s, sure)
        taken = taken_by(futures, plans[at].extra, work.records)
    return [plans[at] for at in range(len(asked))]


def divide_room(
    room_rps: float, planned_rps: Sequence[float], wanted_rps: Sequence[float], weights: Sequence[float]
) -> tuple[float, ...]:
    """Divide what live records leave: first what the plans count on, then the rest by weights (water filling).

    Args:
        room_rps: live records/s that may be replayed now, at least 0.
        planned_rps: (B,) that the backfills' plans count on now.
        wanted_rps: (B,) that each could use, such as its backlog over the interval; 0 for one that does not run.
        weights: (B,) above 0.

    Returns:
        (B,) records/s, none above what is wanted, together at most the room.

    Raises:
        ValueError: a number out of range, or not one per backfill.
    """
    first = [min(plan, want) for plan, want in zip(planned_rps, wanted_rps, strict=True)]
    given = water_fill(room_rps, first, weights)
    left = max(room_rps - sum(given), 0.0)
    more = water_fill(left, [max(want - own, 0.0) for want, own in zip(wanted_rps, given, strict=True)], weights)
    return tuple(own + extra for own, extra in zip(given, more, strict=True))
