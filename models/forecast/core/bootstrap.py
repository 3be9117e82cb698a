"""How sure a ratio of two errors is: paired blocks of the same steps are drawn again and again."""

from __future__ import annotations

import math

import numpy as np

from models.forecast.core.series import Floats, SeriesError

DRAWS = 2000
_SEED = 5


def rmse_ratio(
    mine: Floats, theirs: Floats, generator: np.random.Generator, share: float = 0.95
) -> tuple[float, float]:
    """The central interval, of 95 % by default, of RMSE(mine) ÷ RMSE(theirs) under a paired moving-block bootstrap.

    Blocks of ⌈√T⌉ steps keep what errors have to do with the ones before them (Künsch 1989). An interval that reaches
    down to 1 says that mine are not worse at 95 %.

    Args:
        mine: (T,) errors; a NaN leaves the step out.
        theirs: (T,) errors of the same steps.
        generator: draws the blocks.
        share: of the draws that lie within the interval.

    Raises:
        SeriesError: fewer than two steps are known.
    """
    ratios = np.sqrt(_ratios(mine**2, theirs**2, generator))
    low, high = np.quantile(ratios, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def at_most(mine: Floats, theirs: Floats, rivals: int = 1) -> float:
    """What the mean of my losses is of theirs at most, by the same bootstrap.

    At 95 % for all rivals together (Bonferroni): of ten that are as good, one looks better by luck.

    Args:
        mine: (T,) losses or costs, at least 0; a NaN leaves the step out.
        theirs: (T,) of the same steps.
        rivals: how many are compared.

    Raises:
        SeriesError: fewer than two steps are known.
    """
    return float(np.quantile(_ratios(mine, theirs, np.random.default_rng(_SEED)), 1 - 0.025 / max(rivals, 1)))


def _ratios(mine: Floats, theirs: Floats, generator: np.random.Generator) -> Floats:
    """(DRAWS,) ratios of sums over drawn blocks."""
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
    return ratios
