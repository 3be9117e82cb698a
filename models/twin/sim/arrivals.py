"""From a coarse trace to what arrives second by second: a smooth curve that keeps every step's mean, and chance."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

from models.policy.core.capacity import Floats, Integers
from models.twin.sim.job import TwinError


def filled(values: Floats) -> Floats:
    """(T,) records/s with missing steps (NaN) on a line between their neighbours.

    Raises:
        TwinError: a negative or infinite rate, or less than two known steps.
    """
    known = np.isfinite(values)
    if np.isinf(values).any() or (values[known] < 0).any():
        at = int(np.flatnonzero(np.isinf(values) | (values < 0))[0])
        raise TwinError(f"step {at}: {values[at]} is not a rate; rates are finite and at least 0")
    if known.sum() < 2:
        raise TwinError(f"{int(known.sum())} known steps: a load needs two; take a longer trace")
    steps = np.arange(len(values))
    return np.interp(steps, steps[known], values[known])


def restored(values: Floats) -> Floats:
    """(T,) a trace whose publisher added an offset, with 95 % of its least value taken off.

    The offset itself is not published; what is left has the peak-to-trough range of a load that nearly sleeps at night.
    """
    return values - 0.95 * np.nanmin(values)


def rates(values: Floats, step_s: float) -> Floats:
    """(T * step_s,) records/s at every second: smooth, at least 0, and its mean over each step is the step's value.

    The derivative of the monotone cubic (Fritsch and Carlson 1980) through the running total at the ends of steps.
    """
    total = summed(filled(values) * step_s)
    if step_s == 1:
        return np.diff(total)
    ends = np.arange(len(total)) * float(step_s)
    return np.maximum(np.diff(PchipInterpolator(ends, total)(np.arange(int(ends[-1]) + 1))), 0.0)


def drawn(rate: Floats, seed: int) -> Floats:
    """(T + 1,) records produced before each second, Poisson around (T,) records/s; the same for the same seed."""
    return summed(np.random.default_rng(seed).poisson(rate))


def summed(counts: Floats | Integers) -> Floats:
    """(..., S + 1) what came before each second, of (..., S) what comes in each."""
    return np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
