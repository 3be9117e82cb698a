"""What a decision costs, in executor-seconds; and as the agent is told it, in shares of the whole job's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats

ACTION_S = 2.0
"""Executor-seconds that one change of the target costs."""
PARTS = 2
"""Executors (and actions), and violation: learned apart, because they differ by orders of magnitude."""


@dataclass(frozen=True, eq=False)
class Bill:
    """What came of one step, per run.

    Attributes:
        paid_s: (runs,) executor-seconds, from the request on.
        over_s: (runs,) seconds that went over the latency target.
        changed: (runs,) changes of the target.
    """

    paid_s: Floats
    over_s: Floats
    changed: Floats


def executor_seconds(bill: Bill, price: Floats | float, most: Floats) -> Floats:
    """(runs,) `-(paid + price * most * over + ACTION_S * changed)`.

    The price says how much a second over the target is worth: so many seconds of all executors that the job may have.
    """
    cost: Floats = -(bill.paid_s + price * most * bill.over_s + ACTION_S * bill.changed)
    return cost


def parts(bill: Bill, needed: Floats, most: Floats, seconds: float) -> Floats:
    """(runs, 2) the same without the price, as shares of `most * seconds`.

    With weights (1, price) their sum is `(executor_seconds + needed * seconds) / (most * seconds)`.

    Args:
        bill: of the step.
        needed: (runs,) executors that the load of the step needs. No action changes it, so taking it off changes no
            decision, but what is left differs less from run to run and is learned faster.
        most: (runs,) upper bound of the executors.
        seconds: length of the step.
    """
    executors = bill.paid_s + ACTION_S * bill.changed - needed * seconds
    return np.stack([-executors / (most * seconds), -bill.over_s / seconds], axis=1)
