"""The six series of the source paper's table: two sources at three steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.forecast.core.resample import coarsen, match, refine
from models.forecast.core.series import Floats
from models.forecast.replication.training import cut
from pipelines.traces.series_file import read_series
from pipelines.traces.shipped import find

STEPS = (300, 120, 60)
_DAY_S = 86_400


@dataclass(frozen=True, eq=False)
class Cell:
    """One series at one step, and where its test rows begin.

    Attributes:
        source: "IoT traffic" or "green taxi".
        step_s: seconds per step.
        start: epoch seconds of the first step.
        loads: (T,) records per step.
        first: index of the first test row; the four fifths before it are for training.
        clean: (T,) the load without the noise that was added to it; None where nothing was added.
        independent_rmse: the least RMSE on the test rows, were the events independent of each other; NaN where
            nothing was counted.
        clipped: values that matching moved below 0.
    """

    source: str
    step_s: int
    start: float
    loads: Floats
    first: int
    clean: Floats | None = None
    independent_rmse: float = math.nan
    clipped: int = 0

    @property
    def training(self) -> Floats:
        """The training part."""
        return self.loads[: self.first]

    @property
    def test(self) -> Floats:
        """The test part."""
        return self.loads[self.first :]

    @property
    def day(self) -> int:
        """Steps per day."""
        return _DAY_S // self.step_s

    @property
    def times(self) -> Floats:
        """(T,) epoch seconds."""
        return self.start + self.step_s * np.arange(len(self.loads), dtype=np.float64)


def cells(steps: tuple[int, ...], seed: int) -> Iterator[Cell]:
    """Both sources at each step: IoT traffic by Algorithm 1, taxi trips by Algorithm 2 matched to it."""
    iot = find("iot 5min").series()
    taxi = read_series(find("green_taxi 5min").path)  # trips per minute
    times: Floats = iot.start + iot.step_s * np.arange(len(iot), dtype=np.float64)
    for step_s in steps:
        load = refine(times, iot.values, step_s, np.random.default_rng([seed, step_s]))
        yield Cell("IoT traffic", step_s, iot.start, load.values, cut(len(load.values)), load.clean)
        counts = coarsen(taxi.values, round(step_s / taxi.step_s))
        matched, clipped = match(counts, load.mean, load.deviation)
        first = cut(len(matched))
        # a count of independent events has the variance of its mean (Poisson), whatever is known beforehand
        least = math.sqrt(float(counts[first:].mean())) * load.deviation / float(counts.std())
        yield Cell("green taxi", step_s, taxi.start, matched, first, None, least, clipped)
