"""Staggered updates: the regressions learn a few at a time, so that no step has much more to do than another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from models.forecast.blend.ridge import NormalEquations, Ridge, learn
from models.forecast.core.series import Floats

BATCH = 64
"""At most so many rows are learnt at once; with few rows seen, fewer."""
AT_ONCE = 4
"""At most so many steps ahead of one regression are solved at once; they are a part, and parts take turns."""
Part = TypeVar("Part")


def aheads(horizon: int) -> list[slice]:
    """Of each part of a regression, the steps ahead less one."""
    return [slice(first, min(first + AT_ONCE, horizon)) for first in range(0, horizon, AT_ONCE)]


def due(step: int, parts: Sequence[Part]) -> Sequence[Part]:
    """Which of all parts learn at a step, counted from 1.

    Each part learns once in every cycle, and they are spread over it evenly. A cycle is 2 steps at first and 64 from
    the 2048th on. It only ever doubles, where a shorter one ends, so no part waits longer than the new one.
    """
    cycle = min(max((1 << step.bit_length() - 1) // 32, 2), BATCH)
    first, end = (-(-(step % cycle + i) * len(parts) // cycle) for i in (0, 1))
    return parts[first:end]


def learned(
    ridge: Ridge, ahead: slice, part: NormalEquations, newest: tuple[Floats, Floats, Floats], end: int, known: int
) -> NormalEquations:
    """A part that has learnt from all moments whose outcomes are known.

    Args:
        ridge: the regression.
        ahead: of the part.
        part: before.
        newest: (T, columns) what was read at the newest moments, (T,) the level there, (T,) the load (NaN: missing).
        end: after the last of the known moments among these.
        known: how many moments are known since the series began.
    """
    fresh = known - part.rows
    if fresh <= 0:
        return part
    (gathered, levels, measured), begin = newest, end - fresh
    outcomes = [measured[begin + h : end + h] for h in range(ahead.start + 1, ahead.stop + 1)]
    return learn(ridge, part, gathered[begin:end], levels[begin:end], np.stack(outcomes, axis=1), ahead)
