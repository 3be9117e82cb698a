"""What the runs of several loads receive of what is ahead, in as few groups as can be decided for at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Integers
from models.policy.core.view import LoadAhead
from models.twin.promise.daily import DailyForecasts, Received


class HeardTogether(NamedTuple):
    """Runs of any loads whose forecasts have the same shape.

    Attributes:
        runs: (n,) their indices among the runs of all loads, rising.
        parts: index of the load, and the group of its runs.
    """

    runs: Integers
    parts: tuple[tuple[int, Received], ...]


class Heard:
    """The forecasts of all loads' runs, which follow one another load by load.

    Attributes:
        groups: runs that one policy can decide for at once; replaced, never changed in place.
    """

    def __init__(self, each: Sequence[DailyForecasts], runs: Sequence[int]) -> None:
        """Put together the forecasts of loads with so many runs each."""
        self._each = each
        self._ends = np.cumsum([0, *runs])
        self._of: list[list[Received]] = []
        self.groups: list[HeardTogether] = []

    def follow(self, number: int, leads_s: Sequence[float]) -> None:
        """Follow (runs,) lead times, seconds, at a look: to be called at each, from the first on."""
        for at, one in enumerate(self._each):
            one.follow(number, leads_s[self._ends[at] : self._ends[at + 1]])
        of = [one.groups for one in self._each]
        if len(of) == len(self._of) and all(new is known for new, known in zip(of, self._of, strict=True)):
            return
        self._of, alike = of, dict[tuple[int, tuple[float, ...]], list[tuple[int, Received]]]()
        for at, groups in enumerate(of):
            for group in groups:
                alike.setdefault((group.offsets_s.shape[1], group.levels), []).append((at, group))
        self.groups = [
            HeardTogether(np.concatenate([self._ends[at] + group.runs for at, group in parts]), tuple(parts))
            for parts in alike.values()
        ]

    def at(self, group: HeardTogether, number: int) -> LoadAhead:
        """Return what a group receives at a look."""
        said = [self._each[at].at(part, number) for at, part in group.parts]
        return LoadAhead(
            np.concatenate([one.offsets_s for one in said]), said[0].levels, np.concatenate([one.rps for one in said])
        )
