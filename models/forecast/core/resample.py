"""The paper's two load simulations: a series refined by a spline and noise, and events matched to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from models.forecast.core.series import MAX_STEPS, Column, Floats, SeriesError

NOISE = 0.1
"""The noise is uniform on ± this share of the load."""
NOISE_FLOOR = 100 / NOISE * math.log(4 / (4 - NOISE**2))
"""Percent: SMAPE (`smape_sum`) of a forecast that knows the load without its noise, E|u|/(2 + u); 2.503 for ± 10 %."""


@dataclass(frozen=True, eq=False)
class Refined:
    """A load at a finer step (Algorithm 1).

    Attributes:
        step_s: seconds per step.
        values: (T,) records per step, whole numbers.
        clean: (T,) the same before noise and truncation; no forecast can know more than this.
    """

    step_s: float
    values: Floats
    clean: Floats

    @property
    def mean(self) -> float:
        """Mean of the values, which Algorithm 2 matches."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the values (ddof 0), which Algorithm 2 matches."""
        return float(self.values.std())


def refine(
    times: Column, values: Column, step_s: float, generator: np.random.Generator, noise: float = NOISE
) -> Refined:
    """Algorithm 1: one not-a-knot cubic spline through all points, read off at a finer step, scaled, made noisy.

    v_j = max(S(j·step), 0) · step/Δ · (1 + u_j), u uniform on ± noise; truncated to whole records. A point that is NaN
    is bridged by the spline; before the first known point its value holds, after the last one that.

    Args:
        times: (N,) epoch seconds, regular, Δ apart.
        values: (N,) records per Δ, at least 4 of them known.
        step_s: the finer step in seconds, at most Δ.
        generator: where the noise comes from.
        noise: half its width, as a share of the load.

    Raises:
        SeriesError: too few points, irregular times, a coarser step, or a load that is infinite or negative.
    """
    t, y = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    coarse = _regular(t, y)
    if not 0 < step_s <= coarse:
        raise SeriesError(f"step_s={step_s:g}: above 0 s and at most the {coarse:g} s of the series is expected")
    axis = np.arange(0.0, t[-1] - t[0] + 1e-6 * step_s, step_s)
    known = np.isfinite(y)
    spline = CubicSpline((t - t[0])[known], y[known], bc_type="not-a-knot", extrapolate=False)
    clean = np.maximum(_carried(spline(axis)), 0.0) * (step_s / coarse)
    noisy = clean * (1 + generator.uniform(-noise, noise, len(clean)))
    return Refined(step_s, np.trunc(noisy), clean)


def count(events: Column, step_s: float, begin: float, end: float) -> Floats:
    """Events per step of [begin, end); steps without one count 0, events outside are dropped.

    Args:
        events: (N,) epoch seconds in any order.
        step_s: seconds per step.
        begin: epoch seconds, a whole multiple of the step.
        end: the same, after it.

    Raises:
        SeriesError: the borders are no multiples of the step, or too many steps lie between them.
    """
    first, last = begin / step_s, end / step_s
    if first != round(first) or last != round(last) or not 0 < last - first <= MAX_STEPS:
        raise SeriesError(
            f"from {begin} to {end} in steps of {step_s:g} s: whole steps since the epoch, 1 to {MAX_STEPS} of them, "
            "are expected"
        )
    at = np.floor(np.asarray(events, dtype=np.float64) / step_s).astype(np.int64) - round(first)
    size = round(last - first)
    return np.bincount(at[(at >= 0) & (at < size)], minlength=size).astype(np.float64)


def coarsen(counts: Floats, factor: int) -> Floats:
    """(T // factor,) sums of `factor` counts in a row; counts left over at the end are dropped."""
    whole = len(counts) // factor * factor
    sums: Floats = counts[:whole].reshape(-1, factor).sum(axis=1)
    return sums


def match(counts: Floats, mean: float, deviation: float) -> tuple[Floats, int]:
    """Algorithm 2, step 4: z-scores (ddof 0) moved to a mean and a deviation; how many were below 0 and clipped.

    This changes SMAPE, which is not shift-invariant: never compare SMAPE before and after.

    Raises:
        SeriesError: the counts are constant, so that they have no z-scores.
    """
    if not counts.std() > 0:
        raise SeriesError(
            f"{len(counts)} counts without any spread have no z-scores. Choose a longer step or more events."
        )
    moved = (counts - counts.mean()) / counts.std() * deviation + mean
    return np.maximum(moved, 0.0), int((moved < 0).sum())


def _regular(times: Floats, values: Floats) -> float:
    """Seconds per step of regular times."""
    if len(times) != len(values) or np.isfinite(values).sum() < 4:
        raise SeriesError(
            f"{len(times)} times, {np.isfinite(values).sum()} known values: at least 4 pairs are expected"
        )
    steps = np.diff(times)
    if not steps[0] > 0 or (odd := np.abs(steps - steps[0]) > 1e-6 * steps[0]).any():
        at = int(np.argmax(odd)) + 1 if steps[0] > 0 else 1
        raise SeriesError(
            f"row {at}: {steps[at - 1]} s after the row before; steps of one length above 0 s are expected"
        )
    if (bad := (values < 0) | np.isinf(values)).any():
        at = int(np.argmax(bad))
        raise SeriesError(f"row {at}: value={values[at]}; a load is finite and not negative. Quarantine the record.")
    return float(steps[0])


def _carried(values: Floats) -> Floats:
    """The values with NaN replaced by the last known one before it, at the beginning by the first known one."""
    known = np.isfinite(values)
    at = np.maximum.accumulate(np.where(known, np.arange(len(values)), np.argmax(known)))
    return values[at]
