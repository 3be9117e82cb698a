"""The six series of the source paper's table: two sources at three steps, simulated as the paper does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from configs.bounds import DAY_S
from models.forecast.core.series import Floats, Series, SeriesError
from pipelines.traces.series_file import read_series
from pipelines.traces.shipped import find_shipped

STEPS = (300, 120, 60)
NOISE = 0.1
"""The noise is uniform on ± this share of the load."""
NOISE_FLOOR = 100 / NOISE * math.log(4 / (4 - NOISE**2))
"""Percent: SMAPE (`smape_sum`) of a forecast that knows the load without its noise, E|u|/(2 + u); 2.503 for ± 10 %."""
TRAINING = 0.8
"""Share of the points, the oldest, that a model is fitted on."""


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
        """The loads of the training part, (first,)."""
        return self.loads[: self.first]

    @property
    def test(self) -> Floats:
        """The loads of the test part, (T − first,)."""
        return self.loads[self.first :]

    @property
    def day(self) -> int:
        """Steps per day."""
        return round(DAY_S / self.step_s)


def simulate_cells(steps: tuple[int, ...], seed: int) -> Iterator[Cell]:
    """Simulate the series of the source paper (Armah and Banning, 2025): two sources at each step, IoT traffic first.

    IoT traffic is refined by the paper's Algorithm 1, see `refine`; taxi trips are counted per step and moved to its
    mean and deviation by Algorithm 2, see `match_moments`. Lazy: errors come at a `next`.

    Args:
        steps: seconds, multiples of 60 up to 300.
        seed: of the noise.

    Raises:
        SeriesError: a step is no such multiple; the counts of a step are constant.
        TraceError: a shipped file is gone or damaged.
    """
    if wrong := [step_s for step_s in steps if step_s % 60 or not 60 <= step_s <= 300]:
        raise SeriesError(f"steps of {wrong[0]:g} s: trips are counted per minute. Choose a multiple of 60 up to 300.")
    iot = find_shipped("iot 5min").series()
    taxi = read_series(find_shipped("green_taxi 5min").path)  # trips per minute
    for step_s in steps:
        loads, clean = refine(iot, step_s, np.random.default_rng([seed, step_s]))
        yield Cell("IoT traffic", step_s, iot.start, loads, count_training(len(loads)), clean)
        counts = coarsen(taxi.values, round(step_s / taxi.step_s))
        matched, clipped = match_moments(counts, float(loads.mean()), float(loads.std()))
        first = count_training(len(matched))
        # a count of independent events has the variance of its mean (Poisson), whatever is known beforehand
        least = math.sqrt(float(counts[first:].mean())) * float(loads.std()) / float(counts.std())
        yield Cell("green taxi", step_s, taxi.start, matched, first, None, least, clipped)


def count_training(points: int) -> int:
    """Count the points for training: four fifths, rounded down."""
    return int(TRAINING * points)


def refine(
    coarse: Series, step_s: float, generator: np.random.Generator, noise: float = NOISE
) -> tuple[Floats, Floats]:
    """Interpolate a series to a finer step by a not-a-knot cubic spline and add noise (Armah and Banning, Algorithm 1).

    v_j = max(S(j·step), 0) · step/Δ · (1 + u_j), u uniform on ± noise; truncated to whole records. The spline bridges
    NaN; before the first and after the last known point its value is kept.

    Args:
        coarse: records per step of Δ seconds, at least 4 of them known.
        step_s: the finer step in seconds, at most Δ.
        generator: draws the noise, and is advanced by it.
        noise: half its width, as a share of the load.

    Returns:
        (T,) records per step, whole numbers, and (T,) the same before noise and truncation.

    Raises:
        ValueError: fewer than two points are known.
    """
    times, known = coarse.step_s * np.arange(len(coarse)), np.isfinite(coarse.values)
    spline = CubicSpline(times[known], coarse.values[known], bc_type="not-a-knot")
    axis = np.arange(0.0, times[-1] + 1e-6 * step_s, step_s)
    within = np.clip(axis, times[known][0], times[known][-1])
    clean = np.maximum(spline(within), 0.0) * (step_s / coarse.step_s)
    return np.trunc(clean * (1 + generator.uniform(-noise, noise, len(clean)))), clean


def coarsen(counts: Floats, factor: int) -> Floats:
    """Sum every `factor` counts in a row to (T // factor,); counts left over at the end are dropped."""
    whole = len(counts) // factor * factor
    sums: Floats = counts[:whole].reshape(-1, factor).sum(axis=1)
    return sums


def match_moments(counts: Floats, mean: float, deviation: float) -> tuple[Floats, int]:
    """Shift and scale counts to a mean and a deviation (ddof 0), clipped at 0 (Armah and Banning, Algorithm 2).

    SMAPE is not invariant to shifts: it cannot be compared before and after.

    Args:
        counts: (T,) events per step, without NaN.
        mean: that the result is to have before clipping, in its unit.
        deviation: likewise.

    Returns:
        (T,) values, and how many were clipped; clipping raises the mean and lowers the deviation.

    Raises:
        SeriesError: the counts are constant or hold NaN.
    """
    if not counts.std() > 0:
        raise SeriesError(
            f"{len(counts)} counts without any spread have no z-scores. Choose a longer step or more events."
        )
    moved = (counts - counts.mean()) / counts.std() * deviation + mean
    return np.maximum(moved, 0.0), int((moved < 0).sum())
