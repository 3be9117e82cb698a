"""Ridge regressions that learn online, one per step ahead, on differences between loads.

The steps ahead of a regression learn in parts, by turns, so that every step of the series costs about the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from models.forecast.blend.lags import AROUND, NEAR, RECENT, Indices, Lags
from models.forecast.core.series import Floats

SCALES = ("identity", "root", "log")
ALL = slice(None)  # every step ahead
BATCH = 64
"""At most so many rows are learnt at once; with few rows seen, fewer."""
AT_ONCE = 4
"""At most so many steps ahead of one regression are solved at once; they are a part, and parts take turns."""
Part = TypeVar("Part")
_PRIOR = 0.05
"""Variance of a coefficient before any row was seen: most are small."""
_FADE = 4.0  # so many steps back a recent step's coefficient has half that variance
OFFSET = 0.05  # of the level: what is added to a load before its logarithm
_GRAIN = 1e-9  # share of the mean variance added, for collinear columns
_FEWEST = 8  # rows before it forecasts; a weekly one needs as many as a day has steps
CAP = 3.0  # times the highest load read: forecasts are cut there


@dataclass(frozen=True)
class Ridge:
    """One expert: a ridge regression on differences between loads, with its scale and its forgetting.

    A row is a moment t with the level l there. Loads enter as z = f(y / l), so that a series twice as high gives the
    same rows; f is the identity, the square root or the logarithm. The forecast for h steps ahead is z(base) + Σ w_j ·
    (z(plus_j) − z(minus_j)), with w by ridge regression: the coefficients have a normal prior around 0, and the ridge
    is the residual variance divided by the prior's variance.

    Attributes:
        lags: the columns.
        season: what it reads beside the recent steps: "none", "day" or "week" (which includes the day).
        base: where it starts from: "level" (the newest mean; differences from it), "own level" (each difference is
            taken from the level of its own time, so that a lasting shift carries over at once), or "season" (the same
            time last season; differences from what was then).
        scale: "identity", "root" or "log".
        half_life: days after which a row counts half; 0 for never.
    """

    lags: Lags
    season: str
    base: str
    scale: str
    half_life: float = 0.0

    @cached_property
    def columns(self) -> tuple[Indices, Indices, Indices, Floats]:
        """Columns of `Lags` it reads for 1 to H steps ahead, and the prior variances of its p coefficients.

        (H,) base, (H, p) plus and (H, p) minus columns; (p,) variances. An unknown `season` raises KeyError.
        """
        by_ahead = [self._columns(h) for h in range(1, self.lags.task.horizon + 1)]
        base = np.array([base for base, _ in by_ahead])
        pairs = np.array([[row[:2] for row in read] for _, read in by_ahead])
        prior = _PRIOR * np.array([variance for _, _, variance in by_ahead[0][1]])
        return base, np.ascontiguousarray(pairs[..., 0]), np.ascontiguousarray(pairs[..., 1]), prior

    @cached_property
    def reach(self) -> int:
        """Steps that a series must have more than, for a row to be complete: for all steps ahead it reads so far back.

        Every regression with a season reads the load a whole season before the newest one, `Season.lag(0)`.
        """
        return {"none": 0, "day": self.lags.task.day, "week": self.lags.task.week}[self.season]

    def _columns(self, h: int) -> tuple[int, list[tuple[int, int, float]]]:
        """Return the base column for h steps ahead, and each difference as (plus, minus, variance in priors)."""
        lags, seasons = self.lags, {"none": 0, "day": 1, "week": 2}[self.season]
        if self.base == "season":
            season = lags.seasons[seasons - 1]
            base = season.lag(h)
            read = [(i, season.lag(-i), 1 / (1 + i / _FADE)) for i in range(NEAR + AROUND)]
            read += [(lags.near, season.lag_anchor, 1.0), (season.profile(h), base, 1.0)]
            read.append((season.profile(0), season.lag(0), 1.0))
            read += [(season.lag(h + j), base, 1 / (1 + abs(j))) for j in range(-AROUND, AROUND + 1) if j]
            if seasons == 2:
                read += [(lags.seasons[0].lag(h), base, 1.0), (lags.seasons[0].lag(0), season.lag(0), 1.0)]
            return base, read
        base = lags.near
        read = [(i, base, 1 / (1 + i / _FADE)) for i in range(RECENT)]
        read += [(lags.near + 1 + i, base, 1.0) for i in range(len(lags.windows))]
        for season in lags.seasons[:seasons]:
            own = self.base == "own level"
            level, profile_level = (season.lag_anchor, season.profile_anchor) if own else (base, base)
            read += [(season.lag(h + j), level, 1 / (1 + abs(j))) for j in range(-AROUND, AROUND + 1)]
            read.append((season.lag(0), level, 1.0))
            read += [(season.profile(ahead), profile_level, 1.0) for ahead in (h, 0)]
        return base, read

    def rows(self, gathered: Floats, levels: Floats, ahead: slice = ALL) -> tuple[Floats, Floats]:
        """Return the regression's base values and regressors at N moments, in its scale.

        Args:
            gathered: (N, columns) records/s.
            levels: (N,) records/s, above 0, or NaN.
            ahead: which steps ahead (less one).

        Returns:
            (N, H) bases and (N, H, p) differences; NaN where a load is missing.
        """
        base, plus, minus, _ = self.columns
        z = self.forward(gathered / levels[:, None])
        return z[:, base[ahead]], z[:, plus[ahead]] - z[:, minus[ahead]]

    def forward(self, ratio: Floats) -> Floats:
        """Return f (identity, square root or logarithm) of loads given as multiples of the level, elementwise."""
        if self.scale == "log":
            return np.log(ratio + OFFSET)
        return np.sqrt(ratio) if self.scale == "root" else ratio


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums that a ridge regression needs of the rows seen, for some or all of its steps ahead.

    Attributes:
        rows: rows offered, incomplete ones included.
        gram: (H, p, p) weighted sums of x xᵀ.
        cross: (H, p) weighted sums of x y.
        power: (H,) weighted sums of y².
        count: (H,) complete rows, decayed by age.
        coefficients: (H, p) as last solved; NaN before.
    """

    rows: int
    gram: Floats
    cross: Floats
    power: Floats
    count: Floats
    coefficients: Floats


def without_rows(ridge: Ridge, ahead: slice = ALL) -> NormalEquations:
    """Return the normal equations before any row: zero sums, NaN coefficients.

    Args:
        ridge: the regression.
        ahead: which steps ahead (less one) they are of.
    """
    horizon, p = ridge.columns[1][ahead].shape
    zero = np.zeros(horizon)
    return NormalEquations(
        0, np.zeros((horizon, p, p)), np.zeros((horizon, p)), zero, zero, np.full((horizon, p), np.nan)
    )


def learn_rows(
    ridge: Ridge, equations: NormalEquations, gathered: Floats, levels: Floats, outcomes: Floats, ahead: slice = ALL
) -> NormalEquations:
    """Return the sums for a ridge regression with N rows (one per moment) added, and its coefficients solved again.

    A row with a missing outcome, regressor or level only counts as offered. Coefficients stay as they were (NaN at
    first) for steps ahead with fewer than 8 complete rows; a weekly regression needs as many as a day has steps.

    Args:
        ridge: the regression; its `half_life` fades the sums of `equations`.
        equations: before; not changed.
        gathered: (N, columns) records/s, in the order of `Lags`; shapes that do not fit: numpy's ValueError.
        levels: (N,) records/s, above 0, or NaN; rows weigh in proportion to it, but equally on the log scale.
        outcomes: (N, H) records/s; NaN where missing.
        ahead: which H steps ahead (less one) the equations and outcomes are of.
    """
    rows, (base, x) = equations.rows + len(levels), ridge.rows(gathered, levels, ahead)
    y = ridge.forward(outcomes / levels[:, None]) - base
    known = np.isfinite(y) & np.isfinite(x).all(axis=-1)
    if not equations.count.any() and not known.any():
        return replace(equations, rows=rows)
    weight = np.where(known, levels[:, None] if ridge.scale != "log" else 1.0, 0.0)  # as the variance of counts
    x, y = np.where(known[..., None], x, 0.0).transpose(1, 0, 2), np.where(known, y, 0.0).T
    weighted = x * weight.T[..., None]
    kept = 0.5 ** (len(levels) / (ridge.half_life * ridge.lags.task.day)) if ridge.half_life else 1.0
    gram = kept * equations.gram + weighted.transpose(0, 2, 1) @ x
    cross = kept * equations.cross + np.einsum("hnp,hn->hp", weighted, y)
    power = kept * equations.power + (weight.T * y * y).sum(axis=1)
    count = kept * equations.count + known.sum(axis=0)
    return NormalEquations(
        rows, gram, cross, power, count, _solve(ridge, gram, cross, power, count, equations.coefficients)
    )


def _solve(ridge: Ridge, gram: Floats, cross: Floats, power: Floats, count: Floats, before: Floats) -> Floats:
    """Return (H, p) ridge coefficients; the residual variance is that under the coefficients before."""
    enough = count >= (max(ridge.lags.task.day, _FEWEST) if ridge.season == "week" else _FEWEST)
    if not enough.any():
        return before
    prior = ridge.columns[3]
    w = np.where(np.isfinite(before), before, 0.0)
    left = power - 2 * np.einsum("hp,hp->h", w, cross) + np.einsum("hp,hpq,hq->h", w, gram, w)
    spread = np.clip(left, 1e-12 * power, power) / np.maximum(count, 1.0)
    p = len(prior)
    ridges = spread[:, None] / prior + (_GRAIN * np.einsum("hpp->h", gram) / p + 1e-12)[:, None]
    system, diagonal = gram.copy(), np.arange(p)
    system[:, diagonal, diagonal] += ridges
    solved = np.linalg.solve(system, cross[..., None])[..., 0]
    return np.where(enough[:, None], solved, before)


def split_horizon(horizon: int) -> list[slice]:
    """Split the steps ahead (less one) into parts of at most `AT_ONCE`, as slices."""
    return [slice(first, min(first + AT_ONCE, horizon)) for first in range(0, horizon, AT_ONCE)]


def due_parts(step: int, parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts that learn at a step; they take turns, spread evenly over a cycle in which each learns once.

    A cycle is 2 steps at first and doubles up to 64 from the 2048th step on.

    Args:
        step: counted from 1.
        parts: all of them, in their order.
    """
    cycle = min(max((1 << step.bit_length() - 1) // 32, 2), BATCH)
    first, end = (-(-(step % cycle + i) * len(parts) // cycle) for i in (0, 1))
    return parts[first:end]


def learn_newest(
    ridge: Ridge, ahead: slice, part: NormalEquations, newest: tuple[Floats, Floats, Floats], end: int, known: int
) -> NormalEquations:
    """Return a part's normal equations after learning the moments whose outcomes became known since it last learned.

    Args:
        ridge: the regression.
        ahead: steps ahead (less one) of the part.
        part: before; not changed, and returned itself where there is no such moment.
        newest: of the newest T moments, oldest first: (T, columns) loads read, (T,) levels, (T,) loads (NaN: missing),
            all in records/s; back to the oldest moment not yet learned, which is not checked.
        end: index after the newest of these whose outcomes are all known, at most T − horizon.
        known: how many such moments there were since the series began.
    """
    fresh = known - part.rows
    if fresh <= 0:
        return part
    (gathered, levels, measured), begin = newest, end - fresh
    outcomes = [measured[begin + h : end + h] for h in range(ahead.start + 1, ahead.stop + 1)]
    return learn_rows(ridge, part, gathered[begin:end], levels[begin:end], np.stack(outcomes, axis=1), ahead)
