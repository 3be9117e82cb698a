"""Where everything lies that the blend's compiled step reads: the columns of the experts as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.experts import LONG_DAYS, SHARES, Experts
from models.forecast.core.series import Floats

Indices = NDArray[np.int64]
_SCALES = ("identity", "root", "log")


class Layout(NamedTuple):
    """Where everything lies, the same for every series of a task.

    Attributes:
        day, near: steps of a day; steps whose mean is the anchor.
        windows: steps of the longer means, of which the first is a day.
        points: steps around each lag whose mean it is.
        lags: (2, repeats, lags) steps from the newest one, of the day and the week.
        repeats: (2,) how many of these repeats a profile is the mean of.
        keep: (means,) what is left of the running means' sums after a step.
        naive: (3, horizon) columns that the seasonal experts repeat.
        base, plus, minus: (R, horizon), (R, horizon, p) twice: columns of the regressions, padded.
        widths, scales: (R,) how many of these p a regression has; which function it reads loads by.
        daily: (E,) whether an expert reads the same time yesterday.
    """

    day: int
    near: int
    windows: Indices
    points: Indices
    lags: Indices
    repeats: Indices
    keep: Floats
    naive: Indices
    base: Indices
    plus: Indices
    minus: Indices
    widths: Indices
    scales: Indices
    daily: NDArray[np.uint8]


def layout(experts: Experts) -> Layout:
    """Of a task's experts."""
    lags, ridges, horizon = experts.lags, experts.ridges, experts.task.horizon
    day, week = lags.seasons
    most, wide = max(day.repeats, week.repeats), max(len(ridge.columns[3]) for ridge in ridges)
    read = np.zeros((2, most, len(day.offsets)), np.int64)
    for i, season in enumerate(lags.seasons):
        read[i] = season.offsets - season.steps * np.arange(most)[:, None]
    plus, minus = np.zeros((len(ridges), horizon, wide), np.int64), np.zeros((len(ridges), horizon, wide), np.int64)
    for r, ridge in enumerate(ridges):
        _, more, less, prior = ridge.columns
        plus[r, :, : len(prior)], minus[r, :, : len(prior)] = more, less
    ahead = np.arange(1, horizon + 1)
    return Layout(
        experts.task.day, lags.near, np.array(lags.windows), lags.points, read, np.array([day.repeats, week.repeats]),
        np.array([0.5 ** (1 / (LONG_DAYS * experts.task.day)), *(1 - share for share in SHARES)]),
        np.stack([day.lag(0) + ahead, week.lag(0) + ahead, week.profile(0) + ahead]),
        np.stack([ridge.columns[0] for ridge in ridges]), plus, minus,
        np.array([len(ridge.columns[3]) for ridge in ridges]),
        np.array([_SCALES.index(ridge.scale) for ridge in ridges]), experts.daily.astype(np.uint8),
    )  # fmt: skip
