"""Stand-ins for forecasts in training: the truth, blurred as much as a good or a bad forecaster would blur it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d
from scipy.stats import t as student

from models.policy.capacity import Floats
from models.policy.view import Ahead

CURVE_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
PEAK_LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995)
REACHES = ((1 / 3, 2 / 3, 1.0, 4 / 3, 2.0, 3.0), (0.25, 0.5, 0.75, 1.0), (1.0,))
"""Ends of the steps of a forecast, in lead + hold: one that looks far ahead, one that does not, and the peak alone."""
HOLD_S = 30.0
SILENT = 0.15
"""Share of the runs without any forecast."""


@dataclass(frozen=True, eq=False)
class Foretold:
    """What runs hear.

    Attributes:
        offsets_s: (K,) as of `Ahead`.
        levels: (Q,) quantile levels.
        rps: (runs, D, K, Q) records/s at the looks; NaN for runs that hear nothing.
    """

    offsets_s: Floats
    levels: tuple[float, ...]
    rps: Floats

    def at(self, look: int) -> Ahead:
        """What is heard at one look."""
        return Ahead(self.offsets_s, self.levels, self.rps[:, look])


def foretell(total: Floats, looks: np.ndarray, lead_s: float, pace_s: float, chance: np.random.Generator) -> Foretold:
    """What is foretold, in one of the forms of `REACHES`.

    Per run: the logarithm of the median lies between that of the truth and that of the last minute, with an error that
    persists from look to look and grows with the square root of the distance. Over the run the errors have no bias;
    the spread is theirs, times a factor of 0.75 to 1.4, because forecasters misjudge themselves.

    Args:
        total: (runs, S + 1) expected records before each second, `3 * (lead + hold)` longer than the last look.
        looks: (D,) whole seconds of the looks.
        lead_s: from the request of an executor to its first task.
        pace_s: between two looks; forecasts reach up to two of them beyond the lead time.
        chance: draws everything.
    """
    runs = len(total)
    reach = lead_s + (min(2 * pace_s, HOLD_S) if chance.random() < 0.5 else 2 * pace_s)
    far = np.array(REACHES[chance.integers(len(REACHES))])
    ends = np.maximum(np.rint(far * reach), np.arange(1, len(far) + 1)).astype(int)
    truth, before = np.log(np.maximum(_truth(total, looks, ends), 1e-9)), np.log(np.maximum(_last(total, looks), 1e-9))
    skill = np.clip(chance.uniform(-0.2, 1.3, (runs, 1, 1)), 0, 1)
    blur = np.exp(chance.uniform(np.log(0.003), np.log(0.3), (runs, 1, 1)))
    keep = np.exp(-1 / chance.uniform(0.5, 12, (runs, 1)))
    error = _persistent((runs, len(looks), len(ends)), keep, chance)
    median = skill * truth + (1 - skill) * before + blur * np.sqrt(far) * error
    median = median + (truth - median).mean(axis=1, keepdims=True)
    misjudged = np.exp(chance.uniform(np.log(0.75), np.log(1.4), (runs, 1, 1)))
    spread = (truth - median).std(axis=1, keepdims=True) * misjudged
    levels = PEAK_LEVELS if len(ends) == 1 else CURVE_LEVELS
    deviations = student.ppf(levels, chance.choice([4, 8, 1000]))
    said = np.exp(np.minimum(median[..., None] + np.maximum(spread, 0.003)[..., None] * deviations, 60.0))
    said[chance.random(runs) < SILENT] = np.nan
    return Foretold(ends.astype(float), levels, said)


def _truth(total: Floats, looks: np.ndarray, ends: np.ndarray) -> Floats:
    """(runs, D, K) mean rates of the steps that end so many seconds after each look; of a single step the peak."""
    if len(ends) == 1:
        rate, size = np.diff(total, axis=1), int(ends[0])
        peaks: Floats = maximum_filter1d(rate, size, axis=1, mode="nearest", origin=-(size // 2))
        return peaks[:, looks, None]
    edges = looks[:, None] + np.concatenate([[0], ends])[None, :]
    means: Floats = np.diff(total[:, edges], axis=2) / np.diff(np.concatenate([[0], ends]))
    return means


def _last(total: Floats, looks: np.ndarray) -> Floats:
    """(runs, D, 1) mean rate of the last minute."""
    until, since = np.maximum(looks, 1), np.maximum(looks - 60, 0)
    rate: Floats = ((total[:, until] - total[:, since]) / (until - since))[:, :, None]
    return rate


def _persistent(shape: tuple[int, int, int], keep: Floats, chance: np.random.Generator) -> Floats:
    """(runs, D, K) standard normal, remembered from look to look by `keep`, and half shared between the steps."""
    own, shared = chance.standard_normal(shape), chance.standard_normal((shape[0], shape[1], 1))
    errors: Floats = np.sqrt(0.5) * own + np.sqrt(0.5) * shared
    for d in range(1, shape[1]):
        errors[:, d] = keep * errors[:, d - 1] + np.sqrt(1 - keep**2) * errors[:, d]
    return errors
