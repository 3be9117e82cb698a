"""Series that follow the blend: compiled but for the regressions' learning, everything that moves kept in place."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.forecast.blend.experts import Experts
from models.forecast.blend.judge import LOST, judge
from models.forecast.blend.judged import Judged, nothing_judged
from models.forecast.blend.layout import Layout, layout
from models.forecast.blend.moment import filter_jumps, gather, tell
from models.forecast.blend.ridge import NormalEquations, nothing
from models.forecast.blend.staggered import BATCH, aheads, due, learned
from models.forecast.core.forecaster import OfTask, Task
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats
from models.forecast.core.state import write


@dataclass(frozen=True)
class Shape(OfTask):
    """What the series of one task have in common."""

    task: Task
    kind: str = "blend"

    @cached_property
    def experts(self) -> Experts:
        """What is blended."""
        return Experts(self.task)

    @cached_property
    def layout(self) -> Layout:
        """Where everything lies."""
        return layout(self.experts)

    @cached_property
    def aheads(self) -> list[slice]:
        """Of each part of a regression, the steps ahead less one."""
        return aheads(self.task.horizon)

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Every part of every regression, in the order in which they learn."""
        return [(r, part) for r in range(len(self.experts.ridges)) for part in range(len(self.aheads))]

    @property
    def context(self) -> int:
        """What `Task.kept` must be asked for so that the experts can look back far enough."""
        return max(self.experts.reach - self.task.week - self.task.day, 0)

    @property
    def many(self) -> int:
        """Newest moments that are kept: as long as learning needs them."""
        return BATCH + self.task.horizon


@dataclass(eq=False)
class Learnt:
    """What one series carries from step to step beside its newest values.

    Attributes:
        seen: steps that were learnt from.
        sums, weights: (means,) of the long-run mean and the running means; sum ÷ weight is the mean.
        parts: of each regression, what its parts have learnt.
        gathered: (many, columns) what was read at the newest moments, records/s.
        marks: (2, many) the level there and the load, NaN where missing.
        judged: what is remembered of errors.
        quantiles: (horizon, levels) records/s from the newest step on.
    """

    seen: int
    sums: Floats
    weights: Floats
    parts: list[list[NormalEquations]]
    gathered: Floats
    marks: Floats
    judged: Judged
    quantiles: Floats


def nothing_learnt(shape: Shape) -> Learnt:
    """Before the first step."""
    task, experts = shape.task, shape.experts
    means = np.zeros(len(shape.layout.keep))
    return Learnt(
        0, means, means.copy(), [[nothing(ridge, ahead) for ahead in shape.aheads] for ridge in experts.ridges],
        np.full((shape.many, experts.lags.count), np.nan), np.full((2, shape.many), np.nan),
        nothing_judged(task, experts.count), np.full((task.horizon, len(task.levels)), np.nan),
    )  # fmt: skip


class BlendTrack:
    """One series, stepped in place.

    Attributes:
        ring: its newest values.
        learnt: everything else; of `gathered` and `marks` see `carried`.
    """

    def __init__(self, shape: Shape, ring: Ring, learnt: Learnt) -> None:
        self.shape, self.ring, self.learnt = shape, ring, learnt
        self.coefficients = np.zeros(shape.layout.plus.shape)
        for r, part in shape.parts:
            self._put(r, part)
        # Buffers twice as long: when the end is reached, the newest half moves to the front.
        self._gathered = np.concatenate([learnt.gathered, np.full(learnt.gathered.shape, np.nan)])
        self._marks = np.concatenate([learnt.marks, np.full(learnt.marks.shape, np.nan)], axis=1)
        self._end = shape.many
        self._said = np.empty((shape.experts.count, shape.task.horizon))

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN where nothing was ever seen. Not to be changed."""
        return self.learnt.quantiles

    def step(self, value: float) -> None:
        """One step later; NaN: missing."""
        if not self.ring.push(value):
            return
        shape, ring, learnt = self.shape, self.ring, self.learnt
        if self._end == 2 * shape.many:
            self._gathered[: shape.many] = self._gathered[shape.many :]
            self._marks[:, : shape.many] = self._marks[:, shape.many :]
            self._end = shape.many
        columns, seen = self._gathered[self._end], min(ring.seen, ring.kept)
        level = gather(shape.layout, ring.buffer, ring.end, seen, learnt.sums, learnt.weights, columns)
        self._marks[:, self._end] = level, value
        self._end += 1
        learnt.seen += 1
        self._learn()
        tell(shape.layout, columns, level, learnt.sums / learnt.weights, self.coefficients, self._said)
        filter_jumps(shape.layout, ring.buffer, ring.end, seen, self._said)
        judge(learnt.judged, learnt.seen, value, level, self._said, learnt.quantiles)

    def trust(self) -> str:
        """`blend`, "last value" while no regression has learnt anything or the load has just changed, or "none"."""
        if not self.ring.seen:
            return "none"
        taught = any(part.rows for parts in self.learnt.parts for part in parts)
        return self.shape.kind if taught and not self.learnt.judged.one[LOST] else "last value"

    def state(self) -> bytes:
        """All that was learnt, and the values."""
        return write(self.shape, self.ring, self.carried())

    def carried(self) -> Learnt:
        """All that was learnt; arrays are shared."""
        after, newest = copy.copy(self.learnt), slice(self._end - self.shape.many, self._end)
        after.gathered, after.marks = self._gathered[newest], self._marks[:, newest]
        return after

    def copied(self) -> BlendTrack:
        """The same, which may be stepped apart from this one."""
        learnt = copy.deepcopy(self.carried(), {id(part): part for parts in self.learnt.parts for part in parts})
        return BlendTrack(self.shape, copy.deepcopy(self.ring), learnt)

    def _learn(self) -> None:
        """The parts whose turn it is take in the newest moments whose outcomes are known."""
        shape, learnt = self.shape, self.learnt
        horizon = shape.task.horizon
        newest = self._gathered[: self._end], self._marks[0, : self._end], self._marks[1, : self._end]
        for r, part in due(learnt.seen, shape.parts):
            ridge, ahead, before = shape.experts.ridges[r], shape.aheads[part], learnt.parts[r][part]
            after = learned(ridge, ahead, before, newest, self._end - horizon, learnt.seen - horizon)
            learnt.parts[r][part] = after
            self._put(r, part)

    def _put(self, r: int, part: int) -> None:
        found = self.learnt.parts[r][part].coefficients
        self.coefficients[r, self.shape.aheads[part], : found.shape[1]] = found
