"""Confidence bounds of the ratio of two errors, by a paired moving-block bootstrap (Künsch 1989)."""

from __future__ import annotations

import math

import numpy as np

from models.forecast.core.series import Floats, SeriesError

DRAWS = 2000
_SEED = 5


def rmse_ratio(
    mine: Floats, theirs: Floats, generator: np.random.Generator, share: float = 0.95
) -> tuple[float, float]:
    """Return the central confidence interval of RMSE(mine) ÷ RMSE(theirs) under a paired moving-block bootstrap.

    Blocks of ⌈√T⌉ steps keep the autocorrelation of the errors (Künsch 1989). A lower end above 1: mine are
    significantly worse; an upper end below 1: significantly better. A draw in which neither errs counts as 1.

    Args:
        mine: (T,) errors; a step with a NaN in either array is left out.
        theirs: (T,) errors of the same steps.
        generator: draws the blocks, and is advanced by it.
        share: confidence of the interval, 0.95 by default.

    Raises:
        SeriesError: fewer than two steps are known in both.
    """
    ratios = np.sqrt(_ratios(mine**2, theirs**2, generator))
    low, high = np.quantile(ratios, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def ratio_bound(mine: Floats, theirs: Floats, rivals: int = 1) -> float:
    """Return the upper confidence bound of mean(mine) ÷ mean(theirs), by the bootstrap of `rmse_ratio`; deterministic.

    It is the 97.5 % quantile for one rival, and stricter by the Bonferroni correction for several. Below 1: mine are
    significantly lower.

    Args:
        mine: (T,) losses or costs, at least 0; a step with a NaN in either array is left out.
        theirs: (T,) of the same steps.
        rivals: number of comparisons made; under 1 counts as 1.

    Raises:
        SeriesError: fewer than two steps are known in both.
    """
    return float(np.quantile(_ratios(mine, theirs, np.random.default_rng(_SEED)), 1 - 0.025 / max(rivals, 1)))


def _ratios(mine: Floats, theirs: Floats, generator: np.random.Generator) -> Floats:
    """Return (DRAWS,) ratios of sums over drawn blocks, 1 where both are 0; steps with a NaN are removed first."""
    known = np.isfinite(mine) & np.isfinite(theirs)
    both = np.stack([mine[known], theirs[known]])  # (2, T)
    steps = both.shape[1]
    if steps < 2:
        raise SeriesError(f"{steps} pairs of errors; at least 2 are needed. Use more test rows.")
    block = math.ceil(math.sqrt(steps))
    begins = generator.integers(0, steps - block + 1, size=(DRAWS, math.ceil(steps / block)))
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(both, axis=1)], axis=1)
    drawn = (sums[:, begins + block] - sums[:, begins]).sum(axis=-1)  # (2, DRAWS)
    ratios: Floats = drawn[0] / np.maximum(drawn[1], 1e-300)
    ratios[(drawn == 0).all(axis=0)] = 1.0  # neither is better where both are perfect, as on a load of zeros
    return ratios
