"""What a decision costs, as the DQN policy is told it: in shares of what all executors of the job cost."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Floats

ACTION_S = 2.0
"""Executor-seconds that one change of the target costs."""
PARTS = 2
"""Executors (and actions), and violation: learned apart, because they differ by orders of magnitude."""


def parts(account: Floats, needed: Floats, most: Floats, seconds: float) -> Floats:
    """(runs, 2) shares of `most * seconds`: executors (and actions) beyond those needed, and violation, as losses.

    With weights (1, price) their sum is `needed / most` less `paid + ACTION_S * changes + price * most * over` as such
    a share: the price says how much a second over the target is worth, in seconds of all executors.

    Args:
        account: (3, runs) of the step: executor-seconds paid, from the request on, seconds over the latency target, and
            changes of the target.
        needed: (runs,) executors that the load of the step needs. No action changes it, so taking it off changes no
            decision, but what is left differs less from run to run and is learned faster.
        most: (runs,) upper bound of the executors.
        seconds: length of the step.
    """
    paid, over, changes = account
    executors = paid + ACTION_S * changes - needed * seconds
    return np.stack([-executors / (most * seconds), -over / seconds], axis=1)
