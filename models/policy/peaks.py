"""How high the load will rise before executors asked for now are of use, as quantiles that are kept.

A policy must cover the peak of the time until a raise comes into effect, `lead + hold` seconds, and it must cover it in
all but a thousandth of cases: further out than a forecaster's quantiles reach. So what the peak was above the
forecast's median is measured on the past, in units of a scale known beforehand (split conformal prediction, Vovk et al.
2005; scaled residuals, Lei et al. 2018). Which forecast and which scale serve best is judged on the past too, and the
present rate alone is one of the candidates: a forecast that does not help is not listened to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.policy.capacity import Floats
from models.policy.nowcast import Curves, corrected

LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995)
MEMORIES = (0.25, 1.0, 4.0)
"""Steps for which an error of the forecast lasts; which of them, the past decides."""
JUDGED = (0.9, 0.98, 0.995, 0.999)
"""Levels at which candidates are compared."""
_UPPER = 5
"""Index of the 0.9 quantile among a forecaster's seven levels."""


@dataclass(frozen=True)
class Peaks:
    """How a peak is forecast.

    Attributes:
        memory_steps: for how many steps an error of the forecast lasts; 0: the forecast is not listened to.
        scale: "level" (of the forecast peak) or "spread" (of the forecaster's quantiles).
        scores: (levels,) what the past peaks were above the forecast one, in scales, at `LEVELS`.
        gain: what the past says of the choice: its loss over that of the present rate alone, 1 where nobody listens.
    """

    memory_steps: float
    scale: str
    scores: tuple[float, ...]
    gain: float

    def at(self, curves: Curves, middle: int, offsets_s: Floats, rate_now: Floats) -> Floats:
        """(N, levels) records/s that the load stays under until the last offset, at `LEVELS`."""
        centre, scale = _candidate(self.memory_steps, self.scale, curves, middle, offsets_s, rate_now)
        quantiles: Floats = centre[:, None] + scale[:, None] * np.array(self.scores)[None, :]
        return np.maximum(quantiles, rate_now[:, None])


def fit(curves: Curves, middle: int, offsets_s: Floats, rate_now: Floats, peaks: Floats) -> Peaks:
    """The candidate that served best on past moments, in time order.

    Scores are taken from the older half and judged on the newer one; those of the best come from both.

    Args:
        curves: forecasts at the moments.
        middle: index of the median among the levels.
        offsets_s: (K,) seconds from a moment, the last is lead + hold.
        rate_now: (N,) records/s of the last seconds.
        peaks: (N,) the highest rate until the last offset.
    """
    half = len(peaks) // 2
    tried: dict[tuple[float, str], tuple[Floats, Floats]] = {}
    for memory in (0.0, *MEMORIES):
        for scale in ("level", "spread") if memory else ("level",):
            centre, unit = _candidate(memory, scale, curves, middle, offsets_s, rate_now)
            errors = (peaks - centre) / unit
            known = np.isfinite(errors)
            if known[:half].sum() < 10 or known[half:].sum() < 10:
                continue
            older = np.quantile(errors[:half][known[:half]], JUDGED)
            said = centre[half:, None] + unit[half:, None] * older
            above = peaks[half:, None] - said
            losses = np.nanmean(np.maximum(above * np.array(JUDGED), above * (np.array(JUDGED) - 1)), axis=0)
            tried[memory, scale] = losses, np.quantile(errors[known], LEVELS)
    alone = tried[0.0, "level"][0]
    loss = {of: float(np.mean(losses / np.maximum(alone, 1e-12))) for of, (losses, _) in tried.items()}
    best = min(loss, key=lambda of: loss[of])
    return Peaks(best[0], best[1], tuple(float(s) for s in tried[best][1]), loss[best])


def _candidate(
    memory_steps: float, scale: str, curves: Curves, middle: int, offsets_s: Floats, rate_now: Floats
) -> tuple[Floats, Floats]:
    """(N,) the peak by the median, and what its errors are measured in."""
    if memory_steps == 0:
        return rate_now, np.maximum(rate_now, 1e-9)
    ahead = corrected(curves, middle, offsets_s, rate_now, memory_steps * curves.step_s)
    centre = np.maximum(ahead[:, :, middle].max(axis=1), rate_now)
    if scale == "level":
        return centre, np.maximum(centre, 1e-9)
    upper = np.maximum(ahead[:, :, _UPPER].max(axis=1), rate_now)
    return centre, np.maximum(upper - centre, 0.005 * centre) + 1e-9
