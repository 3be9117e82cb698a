"""Synthetic forecasts for training: the true load, with errors like those of good and bad forecasters."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from models.dqn.environment.synthetic_loads import log_uniform
from models.policy.core.capacity import Floats
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.twin.experiment.foresight import LEVELS as CURVE_LEVELS
from models.twin.experiment.foresight import rolling_maximum
from models.twin.sim.given import Foresight

REACHES = ((1 / 3, 2 / 3, 1.0, 4 / 3, 2.0, 3.0), (0.25, 0.5, 0.75, 1.0))
"""Ends of the steps of a forecast, as multiples of lead + hold: one that reaches far ahead, one that does not."""
PEAKS = 0.3
"""Share of the groups that receive quantiles of two peaks instead (`peaks.stretch_ends`)."""


def draw_forecasts(
    total: Floats, looks: np.ndarray, lead_s: float, every_s: float, chance: np.random.Generator
) -> Foresight:
    """Draw synthetic forecasts: the true load with errors, as quantiles of two peaks or of the steps ahead (`REACHES`).

    Per run, the logarithm of the median lies between that of the truth and that of the mean of the last 60 s. Its error
    persists from decision to decision, grows with the square root of the distance, and varies in size over time; over a
    run it has no bias. The spread of the quantiles is that of the errors, off by a factor of 0.75 to 1.4.

    Args:
        total: (runs, S + 1) expected records before each second, up to `3 * (lead_s + 2 * every_s)` after the last
            decision.
        looks: (D,) whole seconds of the decisions, at least one.
        lead_s: seconds from the request of an executor to its first task.
        every_s: seconds between two observations of the job.
        chance: draws everything.

    Returns:
        Quantiles (runs, D, K, levels) in records/s, one row per run; K is 2 for peaks (in 30 % of the draws), else 4 or
        6.

    Raises:
        IndexError: `total` ends too early.
    """
    runs = len(total)
    hold = 2 * every_s
    peaks = chance.random() < PEAKS
    far = np.array([lead_s / (lead_s + hold), 1.0] if peaks else REACHES[chance.integers(len(REACHES))])
    ends = np.maximum(np.rint(far * (lead_s + hold)), np.arange(1, len(far) + 1)).astype(int)
    truth, before = np.log(np.maximum(_truth(total, looks, ends, peaks), 1e-9)), np.log(_last(total, looks))
    skill = np.clip(chance.uniform(-0.2, 1.3, (runs, 1, 1)), 0, 1)
    blur = log_uniform(chance, 0.003, 0.3, (runs, 1, 1))
    shape = (runs, len(looks), len(ends))
    error = _persistent(shape, np.exp(-1 / chance.uniform(0.5, 12, (runs, 1))), chance)
    calm = _persistent((runs, len(looks), 1), np.exp(-1 / chance.uniform(2, 60, (runs, 1))), chance)
    unrest = np.exp(chance.uniform(0, 1, (runs, 1, 1)) * calm)
    median = skill * truth + (1 - skill) * before + blur * np.sqrt(far) * unrest * error
    median = median + (truth - median).mean(axis=1, keepdims=True)
    known = unrest ** chance.uniform(0, 1, (runs, 1, 1))
    misjudged = log_uniform(chance, 0.75, 1.4, (runs, 1, 1))
    spread = ((truth - median) / known).std(axis=1, keepdims=True) * known * misjudged
    levels = PEAK_LEVELS if peaks else CURVE_LEVELS
    deviations = stdtrit(chance.choice([4, 8, 1000]), levels)
    said = np.exp(np.minimum(median[..., None] + np.maximum(spread, 0.003)[..., None] * deviations, 60.0))
    return Foresight(ends.astype(float), levels, said, np.arange(runs))


def _truth(total: Floats, looks: np.ndarray, ends: np.ndarray, peaks: bool) -> Floats:
    """(runs, D, K) mean rates of the steps that end so many seconds after each look, or the highest ones."""
    begins = np.append(0, ends[:-1])
    if not peaks:
        return np.diff(total[:, looks[:, None] + np.append(0, ends)], axis=2) / np.diff(ends, prepend=0)
    rate = np.diff(total, axis=1)
    peak = [rolling_maximum(rate, int(end - begin))[:, looks + begin] for begin, end in zip(begins, ends, strict=True)]
    return np.stack(peak, axis=2)


def _last(total: Floats, looks: np.ndarray) -> Floats:
    until, since = np.maximum(looks, 1), np.maximum(looks - 60, 0)
    rate: Floats = ((total[:, until] - total[:, since]) / (until - since))[:, :, None]
    return np.maximum(rate, 1e-9)


def _persistent(shape: tuple[int, int, int], keep: Floats, chance: np.random.Generator) -> Floats:
    """(runs, D, K) standard normal, remembered from look to look by `keep`, and half shared between the steps."""
    own, shared = chance.standard_normal(shape), chance.standard_normal((shape[0], shape[1], 1))
    errors: Floats = np.sqrt(0.5) * own + np.sqrt(0.5) * shared
    for d in range(1, shape[1]):
        errors[:, d] = keep * errors[:, d - 1] + np.sqrt(1 - keep**2) * errors[:, d]
    return errors
