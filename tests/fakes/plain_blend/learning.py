"""What regressions learn and say over many steps at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.forecast.blend.ridge import (
    BATCH,
    NormalEquations,
    Ridge,
    due_parts,
    learn_newest,
    split_horizon,
    without_rows,
)
from models.forecast.core.series import Floats
from tests.fakes.plain_blend.reading import predict


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

    parts: tuple[NormalEquations, ...]
    coefficients: Floats


def unseen(horizon: int, columns: int) -> Trail:
    """The trail before the first step, as long as learning needs it."""
    many = BATCH + horizon
    return Trail(np.full((many, columns), np.nan), np.full(many, np.nan), np.full(many, np.nan))


def untaught(ridge: Ridge) -> Taught:
    """A regression that has seen nothing."""
    return _joined([without_rows(ridge, ahead) for ahead in split_horizon(ridge.lags.task.horizon)])


def turns(seen: int, count: int, parts: list[int]) -> list[dict[int, list[int]]]:
    """For each regression its parts that learn at the next steps, by the number of the step from 0."""
    found: list[dict[int, list[int]]] = [{} for _ in parts]
    owners = [(by_step, part) for by_step, many in zip(found, parts, strict=True) for part in range(many)]
    for step in range(count):
        for by_step, part in due_parts(seen + step + 1, owners):
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
                _taught(ridge, ahead, part, trail, before + known, seen + known) if i in due[begin] else part
                for i, (ahead, part) in enumerate(zip(split_horizon(horizon), taught.parts, strict=True))
            ])  # fmt: skip
        rows = slice(before + begin, before + end)
        said[begin:end] = predict(ridge, taught.coefficients, trail.gathered[rows], trail.levels[rows])
    return taught, said


def _taught(ridge: Ridge, ahead: slice, part: NormalEquations, trail: Trail, end: int, known: int) -> NormalEquations:
    return learn_newest(ridge, ahead, part, (trail.gathered, trail.levels, trail.measured), end, known)


def _joined(parts: list[NormalEquations]) -> Taught:
    return Taught(tuple(parts), np.concatenate([part.coefficients for part in parts]))
