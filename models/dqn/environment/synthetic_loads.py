"""Loads to train on: pieces of real traces, and synthetic ones (days, steps, spikes, ramps), as shares of a peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.policy.core.capacity import Floats
from models.workload.rates import autoregressive, decaying_spike

MADE = ("day", "steps", "spikes", "ramps")
_REAL_SHARE = 0.8
"""Share of the runs with a real trace, where there are any."""


def log_uniform(chance: np.random.Generator, low: float, high: float, size: Any = None) -> Any:
    """Draw from a log-uniform distribution between `low` and `high`, both above 0; `size` as in numpy."""
    return np.exp(chance.uniform(np.log(low), np.log(high), size))


@dataclass(frozen=True, eq=False)
class RecordedLoad:
    """A recorded load.

    Attributes:
        values: (T,) rates without missing ones, any unit.
        step_s: seconds per value.
    """

    values: Floats
    step_s: float

    def parted(self, share: float) -> tuple[RecordedLoad, RecordedLoad]:
        """Split in time: the older part, and the newest `share` (0 to 1, at least two steps)."""
        cut = len(self.values) - max(round(share * len(self.values)), 2)
        return RecordedLoad(self.values[:cut], self.step_s), RecordedLoad(self.values[cut:], self.step_s)

    @property
    def playable(self) -> Floats:
        """The values that pieces are drawn from."""
        return self.values


def draw_load_curve(
    grid: Floats, pace_s: float, reach_s: float, traces: Sequence[RecordedLoad], chance: np.random.Generator
) -> Floats:
    """Draw a load curve with a maximum of 1: a piece of a real trace, or a synthetic day, steps, spikes or ramps.

    Args:
        grid: (N,) rising seconds from 0 on, evenly spaced, N at least 2.
        pace_s: seconds between two decisions, the time scale of spikes and noise.
        reach_s: seconds of lead time and decisions, the time scale of days, steps and ramps.
        traces: real ones, taken in 80 % of the draws; empty for synthetic ones only.
        chance: draws everything.

    Returns:
        (N,) shares between 0 and 1; 1 throughout where the drawn piece is 0 throughout.

    Raises:
        ValueError: a trace without values.
    """
    if len(traces) and chance.random() < _REAL_SHARE:
        curve = _piece(grid, traces[int(chance.integers(len(traces)))], chance)
    else:
        kind = MADE[chance.integers(len(MADE))]
        curve = _day(grid, reach_s, chance) if kind in ("day", "spikes") else _walk(grid, reach_s, kind, chance)
        if kind == "spikes":
            curve = curve + _spikes(grid, pace_s, chance)
    if chance.random() < 0.2:
        curve = curve * _wander(grid, pace_s, chance)
    curve = np.maximum(curve, 0.0)
    top = curve.max()
    return curve / top if top > 0 else np.ones(len(grid))


def _piece(grid: Floats, trace: RecordedLoad, chance: np.random.Generator) -> Floats:
    """A piece of a trace, as it was recorded in two of three cases, else up to fifty times faster."""
    step = trace.step_s * np.exp(min(chance.uniform(-4.0, 8.0), 0.0))
    steps = int(np.ceil(grid[-1] / step)) + 2
    start = chance.integers(max(len(trace.playable) - steps, 0) + 1)
    values = trace.playable[start : start + steps]
    return np.interp(grid, np.arange(len(values)) * step, values)


def _day(grid: Floats, reach_s: float, chance: np.random.Generator) -> Floats:
    period = reach_s * log_uniform(chance, 4, 150)
    depth, phase = chance.uniform(0.1, 1.0), chance.uniform(0, 2 * np.pi, 2)
    turn = 2 * np.pi * grid / period
    wave = np.cos(turn + phase[0]) + chance.uniform(0, 0.5) * np.cos(2 * turn + phase[1])
    return 1.0 + depth * wave / 1.2


def _walk(grid: Floats, reach_s: float, kind: str, chance: np.random.Generator) -> Floats:
    """Levels that are held (steps) or joined by lines (ramps)."""
    every = reach_s * log_uniform(chance, 1, 30)
    knots = np.cumsum(chance.exponential(every, int(grid[-1] / every * 2) + 8))
    levels = chance.uniform(chance.uniform(0.1, 0.9), 1.0, len(knots))
    if kind == "ramps":
        return np.interp(grid, knots, levels)
    return levels[np.minimum(np.searchsorted(knots, grid), len(knots) - 1)]


def _spikes(grid: Floats, pace_s: float, chance: np.random.Generator) -> Floats:
    total = np.zeros(len(grid))
    for _ in range(chance.integers(1, 6)):
        since = grid - chance.uniform(0, grid[-1])
        decay = pace_s * log_uniform(chance, 1, 20)
        total += decaying_spike(since, chance.uniform(0.3, 2.0), decay)
    return total


def _wander(grid: Floats, pace_s: float, chance: np.random.Generator) -> Floats:
    """A factor around 1 that forgets itself (AR(1) in its logarithm)."""
    gap = grid[1] - grid[0]
    keep = np.exp(-gap / (pace_s * log_uniform(chance, 1, 40)))
    return np.exp(autoregressive(chance.standard_normal(len(grid)), keep, chance.uniform(0.02, 0.2)))
