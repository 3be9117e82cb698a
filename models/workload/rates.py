"""Arrival rates: a season, spikes, noise that forgets itself; and how many records come of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from models.workload.refusal import refuse_unless

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Spike:
    """A sudden load that decays.

    Attributes:
        at_s: when it begins, seconds since the workload's begin.
        height: at its begin, as a share of the load without it.
        decay_s: seconds until it is 1/e of that.
    """

    at_s: float
    height: float
    decay_s: float


@dataclass(frozen=True)
class RateShape:
    """rate(t) = base·(1 + A·sin(2π(t − φ)/P))·(1 + Σ spikes)·exp(AR(1) noise).

    Attributes:
        base_rps: records/s on average, without spikes.
        amplitude: A, 0 to 1.
        period_s: P.
        phase_s: φ.
        spikes: as above.
        noise: standard deviation of the noise's logarithm; its mean is 1.
        noise_s: seconds after which the noise has forgotten itself but for 1/e.
    """

    base_rps: float = 100.0
    amplitude: float = 0.0
    period_s: float = 86_400.0
    phase_s: float = 0.0
    spikes: tuple[Spike, ...] = ()
    noise: float = 0.0
    noise_s: float = 60.0

    def __post_init__(self) -> None:
        refuse_unless(self.base_rps > 0, f"base_rps={self.base_rps}", "more than 0 records/s")
        refuse_unless(0 <= self.amplitude <= 1, f"amplitude={self.amplitude}", "a share from 0 to 1")
        refuse_unless(self.period_s > 0 and self.noise_s > 0, f"{self.period_s=}, {self.noise_s=}", "more than 0 s")
        refuse_unless(self.noise >= 0, f"noise={self.noise}", "0 or more")
        for spike in self.spikes:
            refuse_unless(
                spike.height >= 0 and spike.decay_s > 0, str(spike), "a height of 0 or more and a decay above 0"
            )


def expected_rates(shape: RateShape, times_s: Floats) -> Floats:
    """Return (T,) records/s without noise, at (T,) seconds since the begin."""
    season = 1 + shape.amplitude * np.sin(2 * np.pi * (times_s - shape.phase_s) / shape.period_s)
    spikes = np.zeros(len(times_s))
    for one in shape.spikes:
        spikes += decaying_spike(times_s - one.at_s, one.height, one.decay_s)
    return shape.base_rps * season * (1 + spikes)


def draw_counts(
    shape: RateShape, times_s: Floats, step_s: float, noise: np.random.Generator, counts: np.random.Generator
) -> Ints:
    """Return (T,) numbers of records in the steps from (T,) seconds on, Poisson around the rate with its noise.

    Args:
        shape: of the rate.
        times_s: evenly spaced.
        step_s: seconds of a step.
        noise: draws the noise.
        counts: draws the numbers.
    """
    rates = expected_rates(shape, times_s + step_s / 2)
    keep = float(np.exp(-step_s / shape.noise_s))
    normals = noise.standard_normal(len(times_s))
    normals[:1] /= np.sqrt(1 - keep**2)  # so that it is as wide at the begin as later
    factor = np.exp(autoregressive(normals, keep, shape.noise) - shape.noise**2 / 2)
    return counts.poisson(rates * factor * step_s).astype(np.int64)


def decaying_spike(since_s: Floats, height: float, decay_s: float) -> Floats:
    """Return height·exp(−t/decay) at (T,) seconds since its begin, 0 before."""
    return np.where(since_s >= 0, height * np.exp(-np.maximum(since_s, 0) / decay_s), 0.0)


def autoregressive(normals: Floats, keep: float, deviation: float) -> Floats:
    """Return (T,) of an AR(1) process, x_t = keep·x_(t−1) + noise, that comes to have this standard deviation.

    Args:
        normals: (T,) standard normal numbers.
        keep: what is kept from step to step, 0 to 1.
        deviation: of the process.
    """
    noise = (normals * deviation * np.sqrt(1 - keep**2)).tolist()
    return np.array([*accumulate(noise, lambda before, more: keep * before + more)])
