"""Adaptive conformal quantiles around any point forecast, from its newest errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.forecast.core.series import Floats

KEPT = 1000
"""Newest errors, in units of their expected size, that quantiles are taken over."""
EVERY = 16
"""Error quantiles of each step ahead are recomputed once in so many steps, by turns."""
_GAIN = 0.005  # step of the level's correction
_NARROW, _WIDE = 4.0, 0.3  # bounds of the tail beyond a moved level, as multiples of its nominal tail
_LEAST = 0.05  # share of the mean load: a smaller load does not make the expected error smaller
_SLOW = 7.0  # days after which an error counts half in the long-run size
_FAST = 0.25  # days, likewise in the present size
_FEWEST = 12.0  # steps: neither half-life is shorter
_LONGEST = 2016.0  # steps: neither is longer


@dataclass(frozen=True, eq=False)
class ConformalState:
    """Forecast errors and pending forecasts of H steps ahead; the last rows of every array are the newest.

    Attributes:
        errors: (KEPT, H) in units of their expected size; NaN where unknown.
        size: (2, H) mean absolute errors, present and long-run, in units of the root of the load (as counts spread).
        count: (H,) errors seen.
        moved: (H, levels) what is added to each level.
        bands: (H, levels) quantiles in units of the expected size.
        centres, units, scales: (H, H) of the forecasts made at the H newest moments, for 1 to H steps ahead.
        said: (H, H, levels) their quantiles.
    """

    errors: Floats
    size: Floats
    count: Floats
    moved: Floats
    bands: Floats
    centres: Floats
    units: Floats
    scales: Floats
    said: Floats


@dataclass(frozen=True)
class Conformal:
    """Adaptive conformal quantiles (Gibbs and Candès 2021), one set per step ahead.

    The expected size of an error is the root of the forecast load, as counts spread, times the mean of the present and
    the long-run mean absolute error in that unit. Quantile q of the newest errors in units of that size is taken at
    level q + d, where d grows by γ·(q − 1) when the outcome was at or under the quantile and by γ·q when it was over.

    Attributes:
        horizon: steps ahead.
        levels: of the quantiles.
        day: steps per day.
    """

    horizon: int
    levels: tuple[float, ...]
    day: int

    def start(self) -> ConformalState:
        """Return the state before the first forecast: no errors, nothing pending."""
        h, levels = self.horizon, len(self.levels)
        pending = np.full((h, h), np.nan)
        return ConformalState(
            np.full((KEPT, h), np.nan), np.zeros((2, h)), np.zeros(h), np.zeros((h, levels)), np.zeros((h, levels)),
            pending, pending, pending, np.full((h, h, levels), np.nan),
        )  # fmt: skip

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """The least (levels,) and the greatest (levels,) correction that may be added to each level, as shares 0..1.

        The tail beyond a level of nominal tail t may become 0.3 t to 4 t, and never passes the median.
        """
        levels = np.array(self.levels)
        tail = np.minimum(levels, 1 - levels)
        inner, outer = np.minimum((_NARROW - 1) * tail, 0.5 - tail), (_WIDE - 1) * tail
        return np.where(levels < 0.5, outer, -inner), np.where(levels < 0.5, inner, -outer)

    @cached_property
    def shares(self) -> Floats:
        """(2,) weight of a new error in the present and in the long-run mean size, once there are many."""
        half_lives = np.clip(np.array([_FAST, _SLOW]) * self.day, _FEWEST, _LONGEST)
        found: Floats = 1 - 0.5 ** (1 / half_lives)
        return found

    def score(self, spread: ConformalState, value: float) -> ConformalState:
        """Return the state after comparing one more outcome with the quantiles issued 1 to H steps before.

        Errors (the newest 1000) and their sizes are renewed; where one has no size, as at rest, the oldest is kept in
        its place. Each level q is moved, within `bounds`, by −0.005 · (1 − q) where the outcome was at or under its
        quantile, else by +0.005 · q. Called once per step, before `quantiles`.

        Args:
            spread: before; it is not changed.
            value: records/s of the step; NaN: missing, no size is renewed and no level corrected.
        """
        back = np.arange(self.horizon - 1, -1, -1), np.arange(self.horizon)  # made h steps ago for h steps ahead
        miss, unit = value - spread.centres[back], spread.units[back]
        known = np.isfinite(miss) & (unit > 0)  # of a load of 0 errors have no unit
        scale = spread.scales[back]
        fresh = np.divide(miss, scale, out=spread.errors[0].copy(), where=scale > 0)
        errors = np.vstack([spread.errors[1:], fresh])
        count = spread.count + known
        share = np.maximum(self.shares[:, None], 1 / np.maximum(count, 1.0))
        missed = np.divide(np.abs(miss), unit, out=spread.size.mean(axis=0), where=known)
        size = spread.size + np.where(known, share * (missed - spread.size), 0.0)
        under = value <= spread.said[back]
        moved = spread.moved + _GAIN * np.where(known[:, None], np.array(self.levels) - under, 0.0)
        return replace(spread, errors=errors, size=size, count=count, moved=np.clip(moved, *self.bounds))

    def quantiles(
        self, spread: ConformalState, centre: Floats, level: float, seen: int
    ) -> tuple[ConformalState, Floats]:
        """Return the state that remembers a new point forecast until its outcomes come, and the quantiles around it.

        Args:
            spread: after `score` of the newest step.
            centre: (H,) point forecasts, records/s, 1 to H steps ahead; NaN gives NaN.
            level: present mean load, records/s; together with the centre it gives the unit of errors, none at 0.
            seen: steps so far; from the 16th on, each step ahead has its error quantiles recomputed once in 16 steps.

        Returns:
            The state, and (H, levels) records/s: ≥ 0, rising over the levels, equal to a centre ≥ 0 at level one half.

        Raises:
            ValueError: numpy's, where `centre` has not H entries.
        """
        unit = np.sqrt(np.maximum(centre, 0.0) * level + _LEAST * level * level)
        size = spread.size.mean(axis=0)
        scale = unit * np.where(spread.count > 0, size, size.max())  # no such error known: the largest size
        bands = self._bands(spread, seen)
        issued = np.maximum(centre[:, None] + scale[:, None] * bands, 0.0)
        levels = np.array(self.levels)
        issued = np.where(levels <= 0.5, np.minimum(issued, centre[:, None]), issued)
        issued = np.sort(np.where(levels >= 0.5, np.maximum(issued, centre[:, None]), issued), axis=1)
        newest = {"centres": centre, "units": unit, "scales": scale, "said": issued}
        appended = {name: np.concatenate([getattr(spread, name)[1:], row[None]]) for name, row in newest.items()}
        return replace(spread, bands=bands, **appended), issued

    def _bands(self, spread: ConformalState, seen: int) -> Floats:
        """Return (H, levels) error quantiles at the moved levels; 0 where no error is known.

        Only steps ahead whose turn it is are recomputed.
        """
        due = np.arange(self.horizon) if seen < EVERY else np.arange(-seen % EVERY, self.horizon, EVERY)
        if not len(due):
            return spread.bands
        ordered = np.sort(spread.errors[:, due], axis=0)  # NaN last
        count = np.isfinite(ordered).sum(axis=0)[:, None]  # 0 while nothing is known of such errors: no width
        level = np.clip(np.array(self.levels) + spread.moved[due], 0.0, 1.0)
        place = np.clip(level * count - 0.5, 0.0, np.maximum(count - 1, 0))
        low = place.astype(np.int64)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        h = np.arange(len(due))[:, None]
        between = ordered[low, h] + (place - low) * (ordered[high, h] - ordered[low, h])
        bands = spread.bands.copy()
        bands[due] = np.where(count > 0, between, 0.0)
        return bands
