"""Series that follow the blend: compiled but for the regressions' learning, everything that moves kept in place."""

from __future__ import annotations

import numpy as np

from models.forecast.blend import staggered as turns
from models.forecast.blend.blend import Blend, Carried
from models.forecast.blend.experts import Learnt
from models.forecast.blend.judge import LOST, judge
from models.forecast.blend.judged import carried, judged
from models.forecast.blend.layout import layout
from models.forecast.blend.moment import gather, hush, tell
from models.forecast.blend.staggered import BATCH, Taught, Trail
from models.forecast.core.ring import Ring
from models.forecast.core.series import Series
from models.forecast.core.state import decode, made_by, parted, read, refill, write_whole
from models.forecast.core.tracks import OneByOne


class BlendTrack:
    """One series."""

    def __init__(self, tracks: BlendTracks, ring: Ring, before: Carried | None) -> None:
        self.tracks, self.ring = tracks, ring
        blend, learnt = tracks.blend, before.learnt if before else tracks.blend.experts.start()
        before = before or blend._start(learnt)
        self.seen, self.sums, self.weights = learnt.seen, learnt.sums.copy(), learnt.weights.copy()
        self.parts = [list(each.parts) for each in learnt.regressions]
        self.coefficients = np.zeros(tracks.layout.plus.shape)
        for r, each in enumerate(learnt.regressions):
            self.coefficients[r, :, : each.coefficients.shape[1]] = each.coefficients
        self.many = BATCH + blend.horizon + 1
        self.gathered = np.full((2 * self.many, learnt.trail.gathered.shape[1]), np.nan)
        self.marks = np.full((2, 2 * self.many), np.nan)  # levels and what was measured
        self.gathered[1 : self.many] = learnt.trail.gathered
        self.marks[:, 1 : self.many] = learnt.trail.levels, learnt.trail.measured
        self.end = self.many
        self.judged = judged(blend, before, self.seen)
        self.quantiles = before.quantiles.copy()
        self._said = np.empty((blend.experts.count, blend.horizon))

    def step(self, value: float) -> None:
        """One step later."""
        if not self.ring.push(value):
            return
        if self.end == 2 * self.many:
            self.gathered[: self.many], self.marks[:, : self.many] = (
                self.gathered[self.many :],
                self.marks[:, self.many :],
            )
            self.end = self.many
        ring, where, columns = self.ring, self.tracks.layout, self.gathered[self.end]
        seen = min(ring.seen, ring.kept)
        level = gather(where, ring.buffer, ring.end, seen, self.sums, self.weights, columns)
        self.marks[:, self.end] = level, value
        self.end += 1
        self._learn()
        self.seen += 1
        tell(where, columns, level, self.sums / self.weights, self.coefficients, self._said)
        hush(where, ring.buffer, ring.end, seen, self._said)
        judge(self.judged, self.seen, value, level, self._said, self.quantiles)

    def trust(self) -> str:
        """`blend`, "last value" while no regression has learnt anything or the load has just changed, or "none"."""
        if not self.ring.seen:
            return "none"
        taught = any(part.rows for parts in self.parts for part in parts)
        return self.tracks.blend.kind if taught and not self.judged.one[LOST] else "last value"

    def state(self) -> bytes:
        """All that was learnt, in the form of the blend's own `Carried`, and the values."""
        return write_whole(self.tracks.made, self.ring, self._carried())

    def _learn(self) -> None:
        """The parts whose turn it is take in the newest moments whose outcomes are known, as `turns.follow` does."""
        due = turns.turns(self.seen, 1, [len(parts) for parts in self.parts])
        if not any(due):
            return
        blend, begin, known = self.tracks.blend, self.end - self.many, 1 - self.tracks.blend.horizon
        trail = Trail(self.gathered[begin : self.end], *self.marks[:, begin : self.end])
        for r, when in enumerate(due):
            for part in when.get(0, ()):
                ahead, before = self.tracks.aheads[part], self.parts[r][part]
                taught = turns._learn(
                    blend.experts.ridges[r], ahead, before, trail, self.many - 1 + known, self.seen + known
                )
                self.parts[r][part] = taught
                self.coefficients[r, ahead, : taught.coefficients.shape[1]] = taught.coefficients

    def _carried(self) -> Carried:
        begin = self.end - self.many + 1
        trail = Trail(self.gathered[begin : self.end], *self.marks[:, begin : self.end])
        regressions = tuple(
            Taught(tuple(parts), np.concatenate([part.coefficients for part in parts])) for parts in self.parts
        )
        learnt = Learnt(self.seen, regressions, self.sums, self.weights, trail)
        return carried(self.judged, learnt, self.quantiles)


class BlendTracks(OneByOne):
    """What the series of one blend have in common.

    Attributes:
        blend: the forecaster.
        kept: newest values of a series.
        layout: where everything lies.
        aheads: of each part of a regression, the steps ahead less one.
    """

    reach = 0

    def __init__(self, blend: Blend) -> None:
        self.blend, self.made, self.layout = blend, made_by(blend), layout(blend.experts)
        self.kept = blend.task.kept(blend._context)
        self.aheads = turns._aheads(blend.experts.ridges[0])

    def begin(self, history: Series) -> BlendTrack:
        """A series after a history."""
        state = self.blend.init(history)
        ring = self._ring()
        ring.start(state, history)
        return BlendTrack(self, ring, state.carried)

    def resume(self, kept: bytes, history: Series) -> tuple[BlendTrack, Series]:
        """A series as it was, and the steps after."""
        found = read(self.made, kept)
        older, rest = parted(found, history)
        ring = self._ring()
        refill(found, older, ring)
        return BlendTrack(self, ring, decode(Carried, found.carried)), rest

    def _ring(self) -> Ring:
        return Ring(self.blend.task, np.full(2 * self.kept, np.nan))
