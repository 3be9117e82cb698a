"""What the linear experts read: loads at chosen distances from a moment, and differences between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import Task
from models.forecast.core.series import Floats

Indices = NDArray[np.int64]
RECENT = 24
"""Newest steps that are read one by one."""
NEAR = 3
"""Newest steps whose mean is the anchor that shifts of the level move along with."""
AROUND = 3
"""Steps before and after the same time in an earlier season that are read."""
_SMOOTH_S = 300.0  # same times are means over so many seconds: one second a day ago is mostly noise
_POINTS = 9  # of which at most so many steps are read
_DAYS, _WEEKS = 7, 3  # seasons that a profile is the mean of
_LONG = 20_160  # steps: weeks longer than this (steps under 30 s) have no profile of several


@dataclass(frozen=True)
class Season:
    """One season's part of the columns.

    Attributes:
        steps: its length.
        repeats: how many of them the profile is the mean of.
        first: column of `lag(-NEAR - AROUND + 1)`.
        offsets: (lags,) steps from the moment to the middle of what each lag column reads.
    """

    steps: int
    repeats: int
    first: int
    offsets: Indices

    @property
    def size(self) -> int:
        """Columns: each lag, each profile entry, and the anchors of both."""
        return 2 * len(self.offsets) + 2

    def lag(self, ahead: int) -> int:
        """Column of the load one season before so many steps ahead."""
        return self.first + ahead + NEAR + AROUND - 1

    def profile(self, ahead: int) -> int:
        """Column of the mean over the newest seasons at that time."""
        return self.lag(ahead) + len(self.offsets)

    @property
    def lag_anchor(self) -> int:
        """Column of the level one season ago."""
        return self.first + 2 * len(self.offsets)

    @property
    def profile_anchor(self) -> int:
        """Column of the profile's level now."""
        return self.lag_anchor + 1


@dataclass(frozen=True)
class Lags:
    """The columns for a task: recent steps, their mean, means of longer windows, then per season lags and profiles."""

    task: Task

    @property
    def near(self) -> int:
        """Column of the mean over the newest `NEAR` steps."""
        return RECENT

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """Steps of the longer means: a day, its quarter, and so on while longer than what is read one by one."""
        lengths, length = [self.task.day], self.task.day // 4
        while length > RECENT:
            lengths.append(length)
            length //= 4
        return tuple(lengths)

    @cached_property
    def seasons(self) -> tuple[Season, Season]:
        """The day and the week."""
        first, found = RECENT + 1 + len(self.windows), []
        for steps, repeats in ((self.task.day, _DAYS), (self.task.week, _WEEKS if self.task.week <= _LONG else 1)):
            ahead = np.arange(1 - NEAR - AROUND, self.task.horizon + AROUND + 1)
            reach = ahead + self._points.max(initial=0)
            whole = steps * np.maximum(1, -(-reach // steps))  # never a step still to come
            found.append(Season(steps, repeats, first, ahead - whole))
            first += found[-1].size
        return found[0], found[1]

    @property
    def count(self) -> int:
        """How many columns there are."""
        return self.seasons[1].first + self.seasons[1].size

    @cached_property
    def _points(self) -> Indices:
        half = int(_SMOOTH_S / self.task.step_s) // 2
        return np.unique(np.linspace(-half, half, _POINTS).round().astype(np.int64))

    @property
    def context(self) -> int:
        """Steps before a moment that are read at most, the moment's own included."""
        reach = max(s.repeats * s.steps - int((s.offsets + s.steps).min()) for s in self.seasons)
        return reach + int(self._points.max(initial=0)) + 1

    def gather(self, values: Floats, at: Indices) -> Floats:
        """The columns at moments.

        Args:
            values: (T,) records/s, gaps filled; NaN before the series began.
            at: (N,) index of each moment's own step, the newest known.

        Returns:
            (N, columns) records/s; NaN where the series does not reach back so far. Means are over what there is.
        """
        recent = _take(values, at[:, None] - np.arange(RECENT))
        parts = [recent, np.nanmean(recent[:, :NEAR], axis=1, keepdims=True)]
        parts.extend(self.mean(values, at, length)[:, None] for length in self.windows)
        for season in self.seasons:
            back = season.steps * np.arange(season.repeats)
            where = season.offsets[None, :] - back[:, None]
            if len(self._points) > 1:
                lags = _take(values, at[:, None, None, None] + where[..., None] + self._points).mean(axis=-1)
            else:
                lags = _take(values, at[:, None, None] + where)  # (N, repeats, lags)
            known = np.isfinite(lags)
            count = known.sum(axis=1)
            total = np.where(known, lags, 0.0).sum(axis=1)
            profile = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
            anchor = slice(AROUND, AROUND + NEAR)
            parts += [lags[:, 0], profile, lags[:, 0, anchor].mean(axis=1, keepdims=True)]
            parts.append(profile[:, anchor].mean(axis=1, keepdims=True))
        return np.concatenate(parts, axis=1)

    @staticmethod
    def mean(values: Floats, at: Indices, length: int) -> Floats:
        """(N,) means over the `length` steps that end at each moment, or as many as there are."""
        begin = max(int(at.min()) - length + 1, 0)
        part = values[begin : int(at.max()) + 1]
        known = np.isfinite(part)
        if len(at) == 1:
            return np.array([part[known].mean() if known.any() else np.nan])
        total = np.concatenate([[0.0], np.cumsum(np.where(known, part, 0.0))])
        count = np.concatenate([[0], np.cumsum(known)])
        until = at - begin + 1
        since = np.maximum(until - length, 0)
        seen = count[until] - count[since]
        found: Floats = np.divide(total[until] - total[since], seen, out=np.full(len(at), np.nan), where=seen > 0)
        return found


def _take(values: Floats, at: Indices) -> Floats:
    """Values at indices; NaN before the first."""
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)
