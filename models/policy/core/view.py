"""What a policy sees of many runs at once: every field has one entry per run.

A live job is a batch of one run; the twin and a backtest show thousands. There is one implementation of each policy.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Capacity, Floats, Integers

Memory = dict[str, Floats]
"""What a policy carries from one decision to the next: arrays by name, the run is their first axis."""


@dataclass(frozen=True, eq=False)
class LoadAhead:
    """The load that is coming, as quantiles.

    Attributes:
        offsets_s: (K,), or (runs, K), rising seconds from now; entry k covers the time since entry k - 1 (the first:
            since now).
        levels: (Q,) quantile levels.
        rps: (runs, K, Q) records/s; NaN without a usable forecast.
    """

    offsets_s: Floats
    levels: tuple[float, ...]
    rps: Floats

    def peak_rps(self, within_s: Floats | float, after_s: Floats | float = 0.0) -> Floats:
        """Return (runs, Q) the highest records/s per level between two times from now; NaN where any step there is NaN.

        Args:
            within_s: end, seconds from now; a number or one per run.
            after_s: beginning, seconds from now, likewise; the forecast's steps count whole, and there is always at
                least one.

        Raises:
            ValueError: a forecast without steps.
        """
        if self.offsets_s.ndim > 1 or isinstance(within_s, np.ndarray) or isinstance(after_s, np.ndarray):
            return self._peak_rps_each(np.atleast_1d(within_s), np.atleast_1d(after_s))
        first = min(bisect_left(self.offsets_s, after_s + 1e-9), len(self.offsets_s) - 1)
        last = bisect_left(self.offsets_s, within_s - 1e-9) + 1
        if last <= first + 1:
            return self.rps[:, first]
        highest: Floats = self.rps[:, first:last].max(axis=1)
        return highest

    def _peak_rps_each(self, within_s: Floats, after_s: Floats) -> Floats:
        steps = np.arange(self.rps.shape[1])
        first = np.minimum((self.offsets_s < after_s[:, None] + 1e-9).sum(axis=1), steps[-1])[:, None]
        last = np.maximum((self.offsets_s < within_s[:, None] - 1e-9).sum(axis=1)[:, None], first)
        highest: Floats = np.where(((first <= steps) & (steps <= last))[..., None], self.rps, -np.inf).max(axis=1)
        return highest

    def peak_rps_at(self, level: float, within_s: Floats | float) -> Floats:
        """Return (runs,) the highest records/s within so many seconds at the nearest level; NaN without a forecast."""
        return self.peak_rps(within_s)[:, nearest_level(self.levels, level)]


@lru_cache(maxsize=64)
def nearest_level(levels: tuple[float, ...], level: float) -> int:
    """Return the index of the level nearest to the given one, of two the first; cached."""
    return int(np.argmin(np.abs(np.array(levels) - level)))


@dataclass(frozen=True, eq=False)
class View:
    """What a policy sees of (runs,) jobs at one evaluation (a "look"). Times are wall seconds.

    Attributes:
        now_s: the time, the same for all runs; epoch seconds live, seconds since the start in the twin.
        since_s: since the last look.
        arrival_rps: (runs,) produced records/s (`received.arrival_rate`).
        lag_records: (runs,) produced and not committed.
        processed_rps: (runs,) committed records/s since the last look.
        busy: (runs,) share, 0 to 1, of the executors' slot time since the last look that was work.
        busiest: (runs,) likewise, of the executor that worked most; NaN where no agent has told it.
        in_batch: (runs,) share of the time since the last look in which a batch ran.
        batch_s: (runs,) mean duration of the batches that ended since the last look; NaN without any.
        executors, starting, leaving: (runs,) that run (with those leaving), were asked for, are asked to leave.
        target: (runs,) executors last asked for.
        since_change_s, since_raise_s: (runs,) since the target last changed, and since it last rose.
        least, most: (runs,) bounds of the target.
        capacity: what numbers of executors sustain, as learned so far.
        ahead: the forecast load; None where there is none.
        late_s, counted_s: (runs,) late seconds, and all seconds of production, that the account of the promise took
            since the last look; NaN where nobody counts.
    """

    now_s: float
    since_s: float
    arrival_rps: Floats
    lag_records: Floats
    processed_rps: Floats
    busy: Floats
    busiest: Floats
    in_batch: Floats
    batch_s: Floats
    executors: Floats
    starting: Floats
    leaving: Floats
    target: Floats
    since_change_s: Floats
    since_raise_s: Floats
    least: Floats
    most: Floats
    capacity: Capacity
    late_s: Floats
    counted_s: Floats
    ahead: LoadAhead | None = None

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.target)

    @property
    def resting(self) -> NDArray[np.bool_]:
        """(runs,) whether nothing arrives and nothing waits: no second can be late now."""
        found: NDArray[np.bool_] = (self.arrival_rps == 0) & (self.lag_records == 0)
        return found

    @property
    def ready(self) -> Floats:
        """(runs,) executors that run and stay."""
        return self.executors - self.leaving

    def select(self, runs: slice | Integers, ahead: LoadAhead | None) -> View:
        """Return what is seen of some of the runs, with the forecasts that these receive."""
        return View(
            self.now_s, self.since_s, self.arrival_rps[runs], self.lag_records[runs], self.processed_rps[runs],
            self.busy[runs], self.busiest[runs], self.in_batch[runs], self.batch_s[runs], self.executors[runs],
            self.starting[runs], self.leaving[runs], self.target[runs], self.since_change_s[runs],
            self.since_raise_s[runs], self.least[runs], self.most[runs], self.capacity.select(runs), self.late_s[runs],
            self.counted_s[runs], ahead,
        )  # fmt: skip
