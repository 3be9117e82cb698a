"""Stand-ins for forecasts in training: the truth, blurred as much as a good or a bad forecaster would blur it."""

from __future__ import annotations

import numpy as np

from models.policy.capacity import Floats
from models.policy.view import Ahead

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
_NORMAL = np.array([-1.28155, -0.67449, 0.0, 0.67449, 1.28155, 1.64485, 1.95996])
"""Quantiles of the normal distribution at `LEVELS`."""
REACH = (1 / 3, 2 / 3, 1.0, 4 / 3, 2.0, 3.0)
"""Ends of the steps of a forecast, in lead times (and two decisions)."""
SILENT = 0.15
"""Share of the runs without any forecast."""


def foretell(total: Floats, looks: Floats, reach_s: float, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Offsets (K,) and quantiles (runs, D, K, Q) in records/s that the runs hear at their looks.

    Per run: the logarithm of the median lies between that of the truth and that of the last minute, with an error that
    persists from look to look and grows with the square root of the distance; the spread is the one that this error
    has over the run, times a factor of 0.6 to 1.7, because forecasters misjudge themselves.

    Args:
        total: (runs, S + 1) expected records before each second, at least `3 * reach_s` longer than the last look.
        looks: (D,) seconds of the looks.
        reach_s: lead time and two decisions.
        chance: draws everything.
    """
    runs, count = len(total), len(looks)
    ends = np.maximum(np.rint(np.array(REACH) * reach_s), np.arange(1, len(REACH) + 1)).astype(int)
    at = looks[:, None].astype(int) + np.concatenate([[0], ends])[None, :]
    coming = np.diff(total[:, at], axis=2) / np.diff(np.concatenate([[0], ends]))
    back = np.maximum(looks - 60, 0).astype(int)
    until = np.maximum(looks, 1).astype(int)
    last = ((total[:, until] - total[:, back]) / (until - back))[:, :, None]
    truth, before = np.log(np.maximum(coming, 1e-9)), np.log(np.maximum(last, 1e-9))
    skill = np.clip(chance.uniform(-0.2, 1.3, (runs, 1, 1)), 0, 1)
    blur = np.exp(chance.uniform(np.log(0.003), np.log(0.3), (runs, 1, 1)))
    error = _persistent((runs, count, len(ends)), np.exp(-1 / chance.uniform(0.5, 12, (runs, 1))), chance)
    median = skill * truth + (1 - skill) * before + blur * np.sqrt(np.array(REACH)) * error
    misjudged = np.exp(chance.uniform(np.log(0.6), np.log(1.7), (runs, 1, 1)))
    spread = (truth - median).std(axis=1, keepdims=True) * misjudged
    said = np.exp(median[..., None] + np.maximum(spread, 0.003)[..., None] * _NORMAL)
    said[chance.random(runs) < SILENT] = np.nan
    return ends.astype(float), said


def at(offsets: Floats, said: Floats, look: int) -> Ahead:
    """What is heard at one look."""
    return Ahead(offsets, LEVELS, said[:, look])


def _persistent(shape: tuple[int, int, int], keep: Floats, chance: np.random.Generator) -> Floats:
    """(runs, D, K) standard normal, remembered from look to look by `keep`, and half shared between the steps."""
    own, shared = chance.standard_normal(shape), chance.standard_normal((shape[0], shape[1], 1))
    fresh: Floats = np.sqrt(0.5) * own + np.sqrt(0.5) * shared
    for d in range(1, shape[1]):
        fresh[:, d] = keep * fresh[:, d - 1] + np.sqrt(1 - keep**2) * fresh[:, d]
    return fresh
