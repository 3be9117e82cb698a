"""The production forecaster: a blend of experts that learns online at every step, with self-calibrating quantiles.

Its step is compiled but for the regressions' learning, and its arrays are changed in place.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.forecast.blend.experts import Experts, IndexTables
from models.forecast.blend.moment import fill_regressors, filter_jumps, forecast_experts
from models.forecast.blend.ridge import BATCH, NormalEquations, due_parts, learn_newest, split_horizon, without_rows
from models.forecast.blend.score_state import ScoreState, empty_score_state
from models.forecast.blend.scoring import LOST, score_and_blend
from models.forecast.core.forecaster import Forecaster, State, Task, begin_state, check_history
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import read_state, write_state
from models.forecast.core.tracks import Ring

LEARN = 16_384
"""Newest steps of a history that are learnt from."""


@dataclass(eq=False)
class ExpertState:
    """What one series carries from step to step beside its newest values.

    Attributes:
        seen: steps that were learnt from.
        sums, weights: (means,) of the long-run mean and the running means; sum ÷ weight is the mean.
        parts: normal equations by regression, then by part of its steps ahead.
        gathered: (moments, columns) records/s, what was read at the newest moments.
        marks: (2, moments) records/s: the level there, NaN while all loads were 0, and the load, NaN where missing.
        judged: past errors of the experts, their weights, and widths of the quantiles.
        quantiles: (horizon, levels) records/s from the newest step on.
    """

    seen: int
    sums: Floats
    weights: Floats
    parts: list[list[NormalEquations]]
    gathered: Floats
    marks: Floats
    judged: ScoreState
    quantiles: Floats


@dataclass(frozen=True)
class Blend(Forecaster):
    """Online blend of naive repetitions, running means and ridge regressions; works at any step and length of history.

    It has no fitted parameters: all that is learnt lies in each series' state.

    Attributes:
        task: what is forecast.
        kind: "blend".
    """

    task: Task
    kind: str = "blend"

    @cached_property
    def experts(self) -> Experts:
        """The forecasts that are blended."""
        return Experts(self.task)

    @cached_property
    def tables(self) -> IndexTables:
        """Index tables of the compiled step."""
        return self.experts.index_tables()

    @cached_property
    def aheads(self) -> list[slice]:
        """The steps ahead (less one) of each part of a regression; see `ridge.split_horizon`."""
        return split_horizon(self.task.horizon)

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Every (regression, part) index pair, in the order in which they learn."""
        return [(r, part) for r in range(len(self.experts.ridges)) for part in range(len(self.aheads))]

    @property
    def moments(self) -> int:
        """How many of the newest moments are kept: as many as learning needs."""
        return BATCH + self.task.horizon

    def begin(self, history: Series) -> BlendTrack:
        """Start a track at the end of a history (may be empty) by learning its newest 16,384 steps, one by one.

        Older steps are only looked up, as the same time of earlier days and weeks. Gaps are filled as by `fill_gaps`.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        track, values = self.prepare(history)
        for value in values:
            track.step(value)
        track.ring.time = history.end
        return track

    def prepare(self, history: Series) -> tuple[BlendTrack, list[float]]:
        """Return a track that has learnt nothing yet, and the newest values of a history, for it to be stepped through.

        Raises:
            SeriesError: as `begin`.
        """
        known = np.flatnonzero(np.isfinite(check_history(self.task, history)))
        cut = max(len(history) - LEARN, int(known[0])) if len(known) else len(history)
        older = Series(history.start, history.step_s, history.values[:cut])
        context = max(self.experts.reach - self.task.week - self.task.day, 0)
        ring = Ring(self.task, begin_state(self.task, older, context))
        return BlendTrack(self, ring, self._nothing_seen()), history.values[cut:].tolist()

    def resume(self, kept: bytes) -> tuple[BlendTrack, State]:
        """Restore a track from the bytes of `BlendTrack.state`; returns the track and its state.

        Raises:
            OnlineError: the bytes are no state, or one of another kind or task.
        """
        state = read_state(self, kept, ExpertState)
        return BlendTrack(self, Ring(self.task, state), state.carried), state

    def _nothing_seen(self) -> ExpertState:
        task, experts = self.task, self.experts
        means = np.zeros(len(self.tables.keep))
        return ExpertState(
            0, means, means.copy(), [[without_rows(ridge, ahead) for ahead in self.aheads] for ridge in experts.ridges],
            np.full((self.moments, experts.lags.count), np.nan), np.full((2, self.moments), np.nan),
            empty_score_state(task, experts.count), np.full((task.horizon, len(task.levels)), np.nan),
        )  # fmt: skip


class BlendTrack:
    """One series followed by a `Blend`; its arrays are changed in place.

    Attributes:
        ring: its newest values.
        kept: everything else; its `gathered` and `marks` are current only in what `carried` returns.
    """

    def __init__(self, blend: Blend, ring: Ring, kept: ExpertState) -> None:
        self.blend, self.ring, self.kept = blend, ring, kept
        self.coefficients = np.zeros(blend.tables.plus.shape)
        for r, part in blend.parts:
            self._put(r, part)
        # Buffers twice as long: when the end is reached, the newest half moves to the front.
        self._gathered = np.concatenate([kept.gathered, np.full(kept.gathered.shape, np.nan)])
        self._marks = np.concatenate([kept.marks, np.full(kept.marks.shape, np.nan)], axis=1)
        self._end = blend.moments
        self._forecasts = np.empty((blend.experts.count, blend.horizon))

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN while nothing was seen. `step` overwrites it."""
        return self.kept.quantiles

    def step(self, value: float) -> None:
        """Append one step: learn from it, weigh the experts (the blended forecasts) anew, and overwrite `quantiles`.

        Each step ahead of a regression learns once in 2 steps at first, once in 64 from the 2048th step on, by turns.

        Args:
            value: mean rate in records/s; NaN: missing. While the series has not begun, a NaN moves the time only.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        if not self.ring.push(value):
            return
        tables, moments, ring, kept = self.blend.tables, self.blend.moments, self.ring, self.kept
        if self._end == 2 * moments:
            self._gathered[:moments] = self._gathered[moments:]
            self._marks[:, :moments] = self._marks[:, moments:]
            self._end = moments
        columns, seen = self._gathered[self._end], min(ring.seen, ring.kept)
        level = fill_regressors(tables, ring.buffer, ring.end, seen, kept.sums, kept.weights, columns)
        self._marks[:, self._end] = level or math.nan, value  # loads are no multiples of a level of 0
        self._end += 1
        kept.seen += 1
        self._learn()
        forecast_experts(tables, columns, level, kept.sums / kept.weights, self.coefficients, self._forecasts)
        filter_jumps(tables, ring.buffer, ring.end, seen, self._forecasts)
        usual = kept.sums[0] / kept.weights[0]
        score_and_blend(kept.judged, kept.seen, value, level, usual, self._forecasts, kept.quantiles)

    def basis(self) -> str:
        """Name what the quantiles rest on.

        Returns:
            "none" while nothing was ever seen. "last value" while no regression was given a row, and after a change of
            level: once the blend's squared one-step error exceeds 4 times the last value's at over 70 % of the newest
            steps (decaying mean over about 8), until it exceeds the last value's at 40 % or less. Else "blend".
        """
        if not self.ring.seen:
            return "none"
        learnt = any(part.rows for parts in self.kept.parts for part in parts)
        return self.blend.kind if learnt and not self.kept.judged.scalars[LOST] else "last value"

    def state(self) -> bytes:
        """Serialise the newest values and all that was learnt, for `Blend.resume`."""
        return write_state(self.blend, self.ring.state(self.carried()))

    def carried(self) -> ExpertState:
        """Return all that was learnt; the arrays are shared with the track, so the next step changes them."""
        after, newest = copy.copy(self.kept), slice(self._end - self.blend.moments, self._end)
        after.gathered, after.marks = self._gathered[newest], self._marks[:, newest]
        return after

    def _learn(self) -> None:
        """Let the regression parts whose turn it is learn from the newest moments whose outcomes are known."""
        blend, kept = self.blend, self.kept
        newest = self._gathered[: self._end], self._marks[0, : self._end], self._marks[1, : self._end]
        end, known, seen = (one - blend.horizon for one in (self._end, kept.seen, self.ring.seen))
        for r, part in due_parts(kept.seen, blend.parts):
            ridge, before = blend.experts.ridges[r], kept.parts[r][part]
            if seen <= ridge.reach:  # as before a day or a week of history: no row of these moments is complete
                kept.parts[r][part] = replace(before, rows=max(known, before.rows))
                continue
            kept.parts[r][part] = learn_newest(ridge, blend.aheads[part], before, newest, end, known)
            self._put(r, part)

    def _put(self, r: int, part: int) -> None:
        found = self.kept.parts[r][part].coefficients
        self.coefficients[r, self.blend.aheads[part], : found.shape[1]] = found
