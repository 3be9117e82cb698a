"""A job's windows as its model counts them: those of which its agent must have miscounted the load are missing.

That is the rule of the lake, by which models are trained and judged. The windows themselves are kept as they came, so
that a load that has really risen is believed from the tenth one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.parts import BEYOND, FEW, JUDGED_BY, select_miscounted, select_miscounted_since
from models.forecast.core.series import Floats, Series
from pipelines.serve.step.windows import Windows


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

        NaN where one is missing, or miscounted by what all of them say; empty where last < first.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        rates = self._rates(first, last)
        return Series(first * self.windows.step_s, self.windows.step_s, _without(rates, select_miscounted(rates)))

    def later(self, first: int, last: int) -> Series:
        """Return windows as `history` does, for a model to be stepped over them: judged each as when it was the newest.

        So a model that is stepped again, after a restart, takes the steps that it took.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        before = min(first, JUDGED_BY - 1) if last >= first else 0
        rates = self._rates(first - before, last)
        counted = _without(rates[before:], select_miscounted_since(rates, before))
        return Series(first * self.windows.step_s, self.windows.step_s, counted)

    def counted_rate(self, newest: int) -> float | None:
        """Return the load of a job's newest window, records/s; None where it must have been miscounted.

        Raises:
            StoreError, msgspec.DecodeError: a window cannot be read.
        """
        for many in (FEW, FEW**2, JUDGED_BY):  # the tenth highest of all is no less than that of the newest
            rates = self._rates(max(newest - many + 1, 0), newest)
            known = rates[np.isfinite(rates)]
            if len(known) >= FEW and rates[-1] <= BEYOND * np.partition(known, -FEW)[-FEW]:
                return float(rates[-1])
        return None if select_miscounted(rates)[-1] else float(rates[-1])

    def _rates(self, first: int, last: int) -> Floats:
        stored = self.windows.rates(self.job, first, last) if last >= first else []
        rates = dict([*stored, *self.unsaved])
        return np.array([rates.get(window, np.nan) for window in range(first, last + 1)])


def _without(rates: Floats, wrong: NDArray[np.bool_]) -> Floats:
    return np.where(wrong, np.nan, rates)
