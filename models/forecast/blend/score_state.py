"""Errors, weights and quantiles of the blend as flat arrays, which the compiled step reads and changes in place."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.conformal import KEPT, Conformal
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Floats

USUAL = 6.0  # half-life of the usual error, in half-lives of an expert's error
Counts = NDArray[np.int64]


class ScoreState(NamedTuple):
    """Past errors of the blend and its experts, and the forecasts issued at the H newest moments.

    An axis of 2 is calm moments, then excited ones (after a step missed by far more than usual).

    Attributes:
        levels, low, high: (levels,) of the quantiles, and by how much they may be moved.
        shares_of_size, share, usual_keep: how fast sizes, the experts' errors and the usual error are renewed.
        scalars: numbers at the places `scoring.USUAL` to `scoring.SCORED`.
        counts, size: (2, H) errors seen; mean squared error of the blend, newest count most.
        loss, products: (2, H, E), (2, H, E, E) mean squared errors of the experts and mean products, in `size`.
        shares: (2, H, E) weights of the experts in the half of the blend that minimises the joint error.
        errors, widths, seen, moved, bands: as in `conformal.ConformalState`, there `errors`, `size`, `count` and so on;
            the rows of `errors` are written in turn.
        ordered, known: (H, KEPT + 1) and (H,) the columns of `errors`, rising, and how many there are.
        centres, units, scales, issued: as in `ConformalState` (there `said`), but row n % H is that of step n.
        pending, moods: (H, H, E) forecasts by moment, step ahead, expert, and (H,) 1 for an excited moment; rows
            likewise.
        scratch: (E,) working space.
    """

    levels: Floats
    low: Floats
    high: Floats
    shares_of_size: Floats
    share: float
    usual_keep: float
    scalars: Floats
    counts: Floats
    size: Floats
    loss: Floats
    products: Floats
    shares: Floats
    errors: Floats
    widths: Floats
    seen: Floats
    moved: Floats
    bands: Floats
    ordered: Floats
    known: Counts
    centres: Floats
    units: Floats
    scales: Floats
    issued: Floats
    pending: Floats
    moods: Counts
    scratch: Floats


def empty_score_state(task: Task, experts: int) -> ScoreState:
    """Return the state of a series before its first step: no errors, nothing pending, equal weights of all experts.

    Args:
        task: gives horizon H, quantile levels and the steps of a day.
        experts: how many forecasts are blended, E; 0 raises ZeroDivisionError.
    """
    h, levels, conformal = task.horizon, len(task.levels), Conformal(task.horizon, task.levels, task.day)
    half_life = float(np.clip(task.day / 2, 96, 576))  # steps after which an expert's error counts half
    low, high = conformal.bounds
    return ScoreState(
        np.array(task.levels), low, high, conformal.shares,
        1 - 0.5 ** (1 / half_life), 0.5 ** (1 / (USUAL * half_life)), np.array([0.0, 0.0, 0.0, 0.0, math.nan, 0.0]),
        np.zeros((2, h)), np.zeros((2, h)), np.zeros((2, h, experts)), np.zeros((2, h, experts, experts)),
        np.full((2, h, experts), 1 / experts),
        np.full((KEPT, h), np.nan), np.zeros((2, h)), np.zeros(h), np.zeros((h, levels)), np.zeros((h, levels)),
        np.zeros((h, KEPT + 1)), np.zeros(h, dtype=np.int64), np.full((h, h), np.nan), np.full((h, h), np.nan),
        np.full((h, h), np.nan), np.full((h, h, levels), np.nan), np.full((h, h, experts), np.nan),
        np.zeros(h, dtype=np.int64), np.zeros(experts),
    )  # fmt: skip
