"""Turn a coarse trace into arrivals per second: a smooth rate that keeps every step's mean, and Poisson counts."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

from models.policy.core.capacity import Floats, Integers
from models.twin.sim.job import ShortLoadError, TwinError

PART = 1_000_000
"""Seconds of a load that are gone through at a time: it may last for years."""


def fill_gaps(values: Floats) -> Floats:
    """Fill missing steps (NaN) of (T,) rates by linear interpolation; at the ends the nearest known rate holds.

    Raises:
        TwinError: a negative or infinite rate; ShortLoadError: fewer than two known steps.
    """
    known = np.isfinite(values)
    if np.isinf(values).any() or (values[known] < 0).any():
        at = int(np.flatnonzero(np.isinf(values) | (values < 0))[0])
        raise TwinError(f"step {at}: {values[at]} is not a rate; rates are finite and at least 0")
    if known.sum() < 2:
        raise ShortLoadError(f"{int(known.sum())} known steps: a load needs two; take a longer trace")
    steps = np.arange(len(values))
    return np.interp(steps, steps[known], values[known])


def subtract_offset(values: Floats) -> Floats:
    """Subtract 95 % of the least value from (T,) rates, for a trace whose publisher added an unpublished offset.

    What is left has the ratio of peak to trough of a load that nearly sleeps at night. NaN stays NaN.
    """
    return values - 0.95 * np.nanmin(values)


def rates_per_second(values: Floats, step_s: float) -> Floats:
    """Turn rates per step into rates per second: smooth, at least 0, and with the given mean over each step.

    They are differences of the monotone cubic (Fritsch and Carlson 1980) through the running total at the ends of
    steps.

    Args:
        values: (T,) records/s, mean of each step; NaN is filled linearly first (`fill_gaps`).
        step_s: seconds per step, above 0.

    Returns:
        (floor(T * step_s),) records/s.

    Raises:
        TwinError: a negative or infinite rate, or fewer than two known steps.
        ValueError: a step of 0 or less.
    """
    total = running_totals(fill_gaps(values) * step_s)
    if step_s == 1:
        return np.diff(total)
    ends = np.arange(len(total)) * float(step_s)
    curve, rates = PchipInterpolator(ends, total), np.empty(int(ends[-1]))
    for begin in range(0, len(rates), PART):
        end = min(begin + PART, len(rates))
        rates[begin:end] = np.maximum(np.diff(curve(np.arange(begin, end + 1))), 0.0)
    return rates


def draw_arrivals(rate: Floats, seed: int) -> Floats:
    """Draw Poisson arrivals around (T,) records/s; the same for the same seed.

    Returns:
        (T + 1,) records produced before each second, 0 first.

    Raises:
        ValueError: a negative rate, or NaN.
    """
    return running_totals(np.random.default_rng(seed).poisson(rate))


def running_totals(counts: Floats | Integers) -> Floats:
    """Sum (..., S) counts per second up to (..., S + 1) counts before each second, 0 first."""
    return np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
