"""What a trace's past teaches about its peaks before policies are judged on what follows."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d

from models.policy.capacity import Floats
from models.policy.peaks import Peaks, fit
from models.twin.foresight import LEVELS, Told

DAYS = 14.0
"""At most so much of the past is looked at, the newest of it."""
EVERY_S = 60.0
"""Seconds between the moments that are looked at; longer where they would be more than `MOMENTS`."""
MOMENTS = 20_000
LEAST_S = 43_200.0
"""A past shorter than half a day teaches nothing."""


def schooled(said: Told, rate: Floats, begins_s: float, offsets_s: Floats, smooth_s: int, seed: int) -> Peaks | None:
    """How peaks are forecast after a past; None where it is too short.

    Args:
        said: by a forecaster, records/s.
        rate: (T,) smooth records/s of every second of the past.
        begins_s: epoch seconds of its first second.
        offsets_s: (K,) as of `foresight.offsets`.
        smooth_s: seconds over which a policy averages the arrivals; the present rate is as noisy as it sees it.
        seed: of that noise.
    """
    reach = int(offsets_s[-1])
    first = max(said.begins_s - begins_s, len(rate) - DAYS * 86_400.0, float(smooth_s))
    last = len(rate) - reach - 1
    if last - first < LEAST_S:
        return None
    moments = np.arange(first, last, max(EVERY_S, (last - first) / MOMENTS)).astype(np.int64)
    highest = maximum_filter1d(rate, reach + 1, origin=-((reach + 1) // 2))[moments]
    total = np.concatenate([[0.0], np.cumsum(rate)])
    seen = (total[moments] - total[moments - smooth_s]) / smooth_s
    now = np.maximum(seen + np.random.default_rng(seed).standard_normal(len(seen)) * np.sqrt(seen / smooth_s), 0.0)
    curves = said.curves(begins_s + moments.astype(float), list(range(len(LEVELS))))
    return fit(curves, LEVELS.index(0.5), offsets_s, now, highest)
