"""A job's windows as its model counts them: those of which its agent must have miscounted the load are missing.

That is the rule of the lake, by which models are trained and judged, where it is certain: a server keeps fewer windows,
and believes one that another one, a day apart, comes near. The windows themselves are kept as they came, so that a load
that has really risen is believed from the tenth one on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.parts import BEYOND, FEW, LATELY, is_doubted, is_lone, select_highest, select_lone
from models.forecast.core.series import Floats, Series
from pipelines.serve.step.windows import Rates, Windows, warmed_steps

log = logging.getLogger(__name__)


class KeptWindows(NamedTuple):
    """The windows of a job that are kept.

    Attributes:
        windows: where they are.
        job: its name.
        unsaved: (window index, records/s) of those that are not there yet.
    """

    windows: Windows
    job: str
    unsaved: Sequence[tuple[int, float]] = ()

    def history(self, first: int, last: int) -> Series:
        """Return windows `first` to `last`, both included, in records/s, for a model to be begun on.

        NaN where one is missing, or miscounted by what all of them say (`select_lone`); empty where last < first.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        rates = self._rates(first, last)
        return self._series(first, np.where(select_lone(rates, self.apart), np.nan, rates))

    def later(self, first: int, last: int) -> Series:
        """Return windows as `history` does, for a model to be stepped over them: judged each as when it was the newest.

        So a model that is stepped again, after a restart, takes the steps that it took.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        before = min(first, LATELY - 1) if last >= first else 0
        lately = self._rates(first - before, last)
        rates = lately[before:].copy()
        for at in np.flatnonzero(rates > BEYOND * lately[lately > 0].min(initial=np.inf)):
            newest = first + int(at)
            if self.is_doubted(newest) and is_lone(self.highest(newest), self.apart):
                rates[at] = np.nan
        return self._series(first, rates)

    @property
    def apart(self) -> int:
        """Windows in a day: of two that lie as far apart each says that the other was no miscount."""
        return max(round(DAY_S / self.windows.step_s), 1)

    def since(self, newest: int) -> int:
        """Return the first window by which the newest is judged: of as many as a champion is warmed on."""
        return max(newest - warmed_steps(self.windows.step_s) + 1, 0)

    def is_doubted(self, newest: int) -> bool:
        """Return whether a job's newest window is so far above the newest hundred that those before have to tell.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        newest_few = self._rates(newest - FEW + 1, newest)
        if newest_few[-1] <= BEYOND * newest_few.min():  # nearly always: the tenth highest of a hundred is no less
            return False
        return is_doubted(self._rates(max(newest - LATELY + 1, 0), newest))

    def highest(self, newest: int) -> Rates:
        """Return the windows that decide, now and later, whether a doubted one was miscounted (`select_highest`).

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        since = self.since(newest)
        rates = [*self.windows.rates(self.job, since, newest), *self.unsaved]
        return select_highest([one for one in rates if one[0] <= newest], since)

    def _rates(self, first: int, last: int) -> Floats:
        stored = self.windows.rates(self.job, first, last) if last >= first else []
        rates = dict([*stored, *self.unsaved])
        return np.array([rates.get(window, np.nan) for window in range(first, last + 1)])

    def _series(self, first: int, rates: Floats) -> Series:
        return Series(first * self.windows.step_s, self.windows.step_s, rates)


class JudgedWindows:
    """What tells of a job's windows, one after the other, which were miscounted.

    The first one in doubt has all read; what decides is carried from then on, as hundreds of jobs that begin their day
    at once would else wait for it at each of their windows.
    """

    def __init__(self) -> None:
        self._highest: Rates | None = None

    def counted_rate(self, kept: KeptWindows, newest: int, rate: float) -> float | None:
        """Return the load of the newest window, records/s; None where it must have been miscounted.

        Args:
            kept: the job's windows.
            newest: later than at the call before.
            rate: of this window, records/s.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        if self._highest is not None:
            self._highest = select_highest([*self._highest, (newest, rate)], kept.since(newest))
        if not kept.is_doubted(newest):
            return rate
        if self._highest is None:
            self._highest = kept.highest(newest)
        if not is_lone(self._highest, kept.apart):
            return rate
        log.warning("serving %s: %.3g records/s count as missing, far above its others", kept.job, rate)
        return None
