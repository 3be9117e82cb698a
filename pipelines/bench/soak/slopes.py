"""How fast something grows in an hour, and whether that is more than noise; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

BLOCKS, SURE = 12, 0.9997
"""One value of each of so many stretches of time is what a line is fitted to, as samples next to each other are alike;
level of the interval of its slope: of thirty series that only fluctuate one grows by chance in 200 runs."""


class Slope(NamedTuple):
    """Growth of a series.

    Attributes:
        per_hour: slope of the line, in the series' unit per hour.
        low: lower end of its interval.
        high: upper end.
        mean: of the series.
    """

    per_hour: float
    low: float
    high: float
    mean: float

    @property
    def grows(self) -> bool:
        """Whether it grows by more than noise says."""
        return self.low > 0

    @property
    def unnoticed(self) -> float:
        """Growth an hour, in the series' unit, that this noise hides half of the time."""
        return (self.high - self.low) / 2


def slope_of(times_s: Sequence[float], values: Sequence[float], least: bool = False) -> Slope:
    """Fit a line to the means of `BLOCKS` stretches of equal length, and return its slope with an interval.

    Args:
        times_s: of the samples, seconds, rising.
        values: of the samples.
        least: take each stretch's least sample for its mean: of a heap most of the scatter is garbage, and a leak is
            in the least one, too.

    Raises:
        ValueError: samples do not reach into each stretch.
    """
    at, found = np.asarray(times_s, float), np.asarray(values, float)
    edges = np.linspace(at[0], math.nextafter(at[-1], math.inf), BLOCKS + 1) if len(at) else np.zeros(BLOCKS + 1)
    block = np.searchsorted(edges, at, side="right") - 1
    counts = np.bincount(block, minlength=BLOCKS) if len(at) else np.zeros(BLOCKS)
    if len(at) < BLOCKS or counts.min() == 0:
        raise ValueError(f"{len(at)} samples do not reach into each of {BLOCKS} stretches of time.")
    if least:
        lowest = [one[found[one].argmin()] for one in np.split(np.arange(len(at)), np.cumsum(counts)[:-1])]
        values_, hours = found[lowest], at[lowest] / 3600
    else:
        values_, hours = np.bincount(block, found, BLOCKS) / counts, np.bincount(block, at, BLOCKS) / counts / 3600
    hours, above = hours - hours.mean(), values_ - values_.mean()
    slope = float(hours @ above / (hours @ hours))
    left = above - slope * hours
    wide = float(stdtrit(BLOCKS - 2, (1 + SURE) / 2)) * math.sqrt(left @ left / (BLOCKS - 2) / (hours @ hours))
    return Slope(slope, slope - wide, slope + wide, float(found.mean()))
