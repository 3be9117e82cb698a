"""Mixes a network's quantiles into the blend's by the newest losses of both, and the medians by squares; compiled."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from models.forecast.core.forecaster import Task
from models.forecast.core.series import Floats

_PRIOR = 0.3  # share of a network of which nothing is known yet
_POWER = 8.0  # exponent of the ratio of the mean losses
_DOUBT = 24.0  # losses after which half of that exponent counts
_FEW = 8.0  # while the blend is lost, past losses count as only so many
_TINY = 1e-12


class MixState(NamedTuple):
    """What the mixing of a network into a blend carries from step to step; the arrays are changed in place.

    Attributes:
        losses: (2, horizon) records/s, mean pinball losses of blend and network by step ahead, newest count most.
        squares: (2, horizon) (records/s)², likewise the mean products of the miss of the blend's median and the
            distance from it to the network's, and the mean squares of that distance.
        counts: (horizon,) losses seen.
        shares: (horizon,) of the network in the newest forecast but for its median, 0..1.
        pending: (horizon, 2, horizon, levels) records/s, what both issued at the newest moments, row n % horizon being
            that of step n; NaN where the network was silent.
    """

    losses: Floats
    squares: Floats
    counts: Floats
    shares: Floats
    pending: Floats


def empty_mix_state(task: Task) -> MixState:
    """Return the state before the first step: no losses, nothing pending, no share."""
    h, levels = task.horizon, len(task.levels)
    nothing = np.zeros((2, h))
    return MixState(nothing, nothing.copy(), np.zeros(h), np.zeros(h), np.full((h, 2, h, levels), np.nan))


@numba.njit(cache=True)
def _pinball(levels: Any, quantiles: Any, value: float) -> float:
    total = 0.0
    for i in range(len(levels)):
        miss = value - quantiles[i]
        total += max(levels[i] * miss, (levels[i] - 1) * miss)
    return total / len(levels)


@numba.njit(cache=True, error_model="numpy")
def score_and_mix(
    state: Any, levels: Any, forgets: float, seen: int, value: float, lost: bool, blended: Any, made: Any, out: Any
) -> None:
    """Score both forecasts of the newest step, then mix the new ones; vertical averaging of distributions is not meant.

    The network's odds in the mean of the quantiles, so many steps ahead, are 3 to 7 times the inverse ratio of the mean
    losses to the power 8 · n / (n + 24) after n losses. While the blend is lost (`BlendTrack.basis`) the network has no
    share. Compiled: shapes are not checked.

    Of the median its share is at most the one with the least mean squared error so far, the mean of miss · distance ÷
    the mean of distance² (Bates and Granger 1969, in its regression form), cut to 0..1: where bursts decide the
    squares, the loss over all levels says little of them. The other levels give way where they would cross the median.

    Args:
        state: a `MixState`, changed in place.
        levels: (levels,) of the quantiles, rising; they contain 0.5.
        forgets: weight of a new loss, once there are many.
        seen: steps so far, this one included.
        value: records/s of the newest step; NaN: missing, nothing is scored.
        lost: whether the blend is lost.
        blended: (horizon, levels) records/s, what the blend forecasts now.
        made: likewise the network; NaN: it is silent.
        out: (horizon, levels) records/s, filled.
    """
    horizon, known, middle = blended.shape[0], levels.shape[0], np.searchsorted(levels, 0.5)
    for h in range(horizon):
        if lost:
            state.counts[h] = min(state.counts[h], _FEW)
        issued = state.pending[(seen - 1 - h) % horizon, :, h]
        if math.isfinite(value) and math.isfinite(issued[0, 0]) and math.isfinite(issued[1, 0]):
            state.counts[h] += 1
            fresh = max(forgets, 1 / state.counts[h])
            for k in range(2):
                state.losses[k, h] += fresh * (_pinball(levels, issued[k], value) - state.losses[k, h])
            miss, distance = value - issued[0, middle], issued[1, middle] - issued[0, middle]
            state.squares[0, h] += fresh * (miss * distance - state.squares[0, h])
            state.squares[1, h] += fresh * (distance * distance - state.squares[1, h])
    row, silent = seen % horizon, lost or not math.isfinite(made[0, 0])
    for h in range(horizon):
        ratio = (state.losses[0, h] + _TINY) / (state.losses[1, h] + _TINY)
        odds = _PRIOR / (1 - _PRIOR) * ratio ** (_POWER * state.counts[h] / (state.counts[h] + _DOUBT))
        share = 0.0 if silent else 1.0 if math.isinf(odds) else odds / (1 + odds)
        state.shares[h] = share
        best = max((state.squares[0, h] + _TINY) / (state.squares[1, h] + _TINY), 0.0)
        for i in range(known):
            state.pending[row, 0, h, i], state.pending[row, 1, h, i] = blended[h, i], made[h, i]
            part = min(share, best) if i == middle else share
            out[h, i] = blended[h, i] if silent else (1 - part) * blended[h, i] + part * made[h, i]
        for i in range(known):
            out[h, i] = min(out[h, i], out[h, middle]) if i < middle else max(out[h, i], out[h, middle])
