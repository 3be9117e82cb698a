"""The relief ladder: what is given up, in which order, while a hard limit stays violated; it is left in reverse.

The order is part of the contract; the unified batch-stream runtime paper relaxes approximation and sheds last, and
leaves the steps between to the engineer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from pydantic import Field

from configs.bounds import Declared, Whole
from models.contract.objective import HEAD

GUARD = 1.2
"""How many times a limit a measurement must be for the ladder to be entered."""
PATIENCE = 2
"""Intervals in a row that make a step, up or down."""
KEPT_PATIENCE = 6
"""Intervals in a row that make a step down where every limit is kept, but not all with room. The paper says of the way
down only that it is in reverse: a job whose live records alone come near their limit would never leave the ladder."""


class ReliefStep(IntEnum):
    """Steps of the ladder; each keeps what those below it do."""

    NONE = 0
    REPLAY = 1
    """The replay stops."""
    MAINTENANCE = 2
    """Maintenance falls to its floor."""
    THETA = 3
    """Approximate operators go to the limits of their errors."""
    CAPACITY = 4
    """The autoscaler is asked for executors."""
    THROTTLE = 5
    """Live records are held back, those of the lowest tenant first."""
    SHED = 6
    """Live records are dropped."""


@dataclass(frozen=True)
class Relief(Declared):
    """Where a job stands on the ladder.

    Attributes:
        step: 0 (not on it) to 6.
        violated: intervals in a row, since the last step, that ask for another one up.
        calm: intervals in a row, since the last step, that ask for one down: KEPT_PATIENCE make it; one within 0.9 of
            every limit counts for as many as bring PATIENCE of these there.
    """

    step: Annotated[int, Field(ge=0, le=6)] = 0
    violated: Whole = 0
    calm: Whole = 0


def advance(relief: Relief, worst: float | None, top: int, passed: Collection[int] = ()) -> Relief:
    """Return where a job stands after an interval.

    Two intervals at 1.2 times a limit or more lead onto the ladder, every two above the limit one step up. Every two
    within 0.9 of it lead one step down, and every six within it; one within 0.9 counts for three of these.

    Args:
        relief: where it stood.
        worst: the largest ratio of a measured value to its hard limit; None: nothing was measured, nothing changes.
        top: the highest step that may be taken now; a job above it stays.
        passed: steps that are passed over, up and down, as there is nothing to give up on them.
    """
    if worst is None:
        return relief
    steps = [int(step) for step in ReliefStep if step not in passed]
    if worst >= GUARD or (worst > 1 and relief.step > ReliefStep.NONE):
        if relief.violated + 1 < PATIENCE:
            return Relief(relief.step, relief.violated + 1)
        return Relief(min((step for step in steps if relief.step < step <= top), default=relief.step))
    if relief.step == ReliefStep.NONE or worst > 1:
        return Relief(relief.step)
    calm = relief.calm + (KEPT_PATIENCE // PATIENCE if worst <= HEAD else 1)
    if calm < KEPT_PATIENCE:
        return Relief(relief.step, 0, calm)
    return Relief(max(step for step in steps if step < relief.step))
