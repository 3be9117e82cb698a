"""Regressions that learn in turns: a few of them at a time, so that no step has much more to do than another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.ridge import Moments, Ridge, learn, nothing
from models.forecast.core.series import Floats

Flags = NDArray[np.bool_]
BATCH = 64
"""At most so many rows are learnt at once; with few rows seen, fewer."""
AT_ONCE = 4
"""At most so many steps ahead of one regression are solved at once; they are a part, and parts take turns."""


@dataclass(frozen=True, eq=False)
class Trail:
    """The newest moments, newest last; NaN before the first.

    Attributes:
        gathered: (T, columns) what was read there, records/s.
        levels: (T,) the level there, records/s.
        measured: (T,) the load there, records/s; NaN where it is missing.
    """

    gathered: Floats
    levels: Floats
    measured: Floats

    def extended(self, gathered: Floats, levels: Floats, measured: Floats) -> Trail:
        """With moments after the newest."""
        pairs = zip((self.gathered, self.levels, self.measured), (gathered, levels, measured), strict=True)
        return Trail(*(np.concatenate(pair) for pair in pairs))

    def newest(self, many: int) -> Trail:
        """Only so many of them."""
        kept = (each[-many:] for each in (self.gathered, self.levels, self.measured))
        return Trail(*(each.copy() if len(self.levels) > 2 * many else each for each in kept))  # holds no long history


@dataclass(frozen=True, eq=False)
class Taught:
    """What a regression has learnt.

    Attributes:
        parts: the moments of each part.
        coefficients: (H, p) of all of them.
    """

    parts: tuple[Moments, ...]
    coefficients: Floats


def unseen(horizon: int, columns: int) -> Trail:
    """The trail before the first step, as long as learning needs it."""
    many = BATCH + horizon
    return Trail(np.full((many, columns), np.nan), np.full(many, np.nan), np.full(many, np.nan))


def untaught(ridge: Ridge) -> Taught:
    """A regression that has seen nothing."""
    return _joined([nothing(ridge, ahead) for ahead in _aheads(ridge)])


def turns(seen: int, count: int, parts: list[int]) -> list[dict[int, list[int]]]:
    """Which parts learn at which of the next steps.

    Each part learns once in every cycle, and their turns are spread over it evenly. A cycle is 2 steps at first and 64
    from the 2048th on. It only ever doubles, where a shorter one ends, so no part waits longer than the new one.

    Args:
        seen: steps before these.
        count: steps.
        parts: how many there are of each regression.

    Returns:
        For each regression its parts by the number of the step, from 0.
    """
    found: list[dict[int, list[int]]] = [{} for _ in parts]
    owners = [(by_step, part) for by_step, many in zip(found, parts, strict=True) for part in range(many)]
    for step in range(count):
        after = seen + step + 1
        cycle = min(max((1 << after.bit_length() - 1) // 32, 2), BATCH)
        first, end = (-(-(after % cycle + i) * len(owners) // cycle) for i in (0, 1))
        for by_step, part in owners[first:end]:
            by_step.setdefault(step, []).append(part)
    return found


def follow(
    ridge: Ridge, taught: Taught, trail: Trail, seen: int, count: int, due: dict[int, list[int]]
) -> tuple[Taught, Floats]:
    """What a regression learns and says over the newest steps of a trail.

    Args:
        ridge: the regression.
        taught: what it had learnt before these steps.
        trail: up to the newest step; it begins at least `BATCH` + horizon steps before these.
        seen: steps before these.
        count: how many they are.
        due: the parts that learn, by step.

    Returns:
        What it has learnt afterwards, and (count, H) records/s said after each step.
    """
    before, horizon = len(trail.levels) - count, ridge.lags.task.horizon
    said = np.empty((count, horizon))
    for begin, end in pairwise(sorted({0, *due, count})):
        if begin in due:
            known = begin + 1 - horizon  # until then every outcome is known
            taught = _joined([
                _learn(ridge, ahead, part, trail, before + known, seen + known) if i in due[begin] else part
                for i, (ahead, part) in enumerate(zip(_aheads(ridge), taught.parts, strict=True))
            ])  # fmt: skip
        rows = slice(before + begin, before + end)
        said[begin:end] = ridge.predict(taught.coefficients, trail.gathered[rows], trail.levels[rows])
    return taught, said


def _learn(ridge: Ridge, ahead: slice, part: Moments, trail: Trail, end: int, known: int) -> Moments:
    """A part that has learnt from all of `known` moments; in the trail they end at `end`."""
    fresh = known - part.rows
    if fresh <= 0:
        return part
    begin = end - fresh
    outcomes = [trail.measured[begin + h : end + h] for h in range(ahead.start + 1, ahead.stop + 1)]
    return learn(ridge, part, trail.gathered[begin:end], trail.levels[begin:end], np.stack(outcomes, axis=1), ahead)


def _joined(parts: list[Moments]) -> Taught:
    return Taught(tuple(parts), np.concatenate([part.coefficients for part in parts]))


def _aheads(ridge: Ridge) -> list[slice]:
    """Of each part, the steps ahead less one."""
    horizon = ridge.lags.task.horizon
    return [slice(first, min(first + AT_ONCE, horizon)) for first in range(0, horizon, AT_ONCE)]
