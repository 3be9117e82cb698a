"""Jumps of a load that happened once and are not foretold again a day later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.moment import ALIKE, JUMP
from models.forecast.core.series import Floats


def one_off(values: Floats, at: NDArray[np.int64], day: int, horizon: int) -> NDArray[np.bool_]:
    """(N, horizon) where who reads the same time yesterday would repeat a jump that nothing but itself speaks for.

    A lasting break looks like a daily jump to whoever looks back one day. It is taken for one only after it has come at
    the same time on two days. From such a jump on, all steps ahead are told.

    Args:
        values: (T,) records/s.
        at: (N,) indices of the newest steps.
        day: steps per day.
        horizon: steps ahead.
    """
    if day < 2:
        return np.zeros((len(at), horizon), bool)
    reach = 2 * day + 1
    padded = np.concatenate([np.full(reach, np.nan), values[max(at[0] - reach, 0) : at[-1] + 1]])
    newest = at - max(at[0] - reach, 0) + reach
    moves = np.diff(padded, prepend=np.nan)
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(np.abs(moves)))])
    usual = (total[newest + 1] - total[newest + 1 - day]) / day
    steps = np.arange(1, horizon + 1)
    read = newest[:, None] + (steps - day * -(-steps // day))[None, :]
    here, before = moves[read], moves[read - day]
    jump = np.abs(here) > JUMP * usual[:, None]
    confirmed = np.abs(here - before) < ALIKE * np.abs(here)
    return np.logical_or.accumulate(jump & ~confirmed, axis=1)
