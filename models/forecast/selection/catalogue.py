"""Every kind of forecaster by name, and how each is fitted to a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from configs.errors import SettingsError
from models.forecast.baselines.linear import fit_linear
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.classical.fit import fit_classical
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.neural.network import Network
from models.forecast.neural.training import fit_network
from models.forecast.selection.champion import Fit

NAIVE = ("last_value", "yesterday", "seasonal_naive")
"""What needs no fitting, and what every other kind is compared with."""
LEAST = 1000
"""Known steps that a network is trained on, at least, for the blend to carry it: of fewer it learns too little."""


def fit_networked(fit: Callable[[Task, Series], Network], task: Task, history: Series) -> Forecaster:
    """Return a blend that carries the network that `fit` trains; without one where under 1,000 steps are known."""
    if np.isfinite(history.values).sum() < LEAST:
        return Blend(task)
    try:
        return NetworkedBlend(task, fit(task, history).frozen)
    except SeriesError:  # so few follow one another that no row is left to learn from
        return Blend(task)


CATALOGUE: dict[str, Fit] = {
    "last_value": lambda task, history: Naive(task, seasonal=False),
    "yesterday": lambda task, history: Naive(task, weekly=False),
    "seasonal_naive": lambda task, history: Naive(task),
    "ridge": fit_linear,
    "ets": partial(fit_classical, "ets"),
    "theta": partial(fit_classical, "theta"),
    "arima": partial(fit_classical, "arima"),
    "gru": partial(fit_network, "gru"),
    "lstm": partial(fit_network, "lstm"),
    "blend": lambda task, history: Blend(task),
    "networked_blend": partial(fit_networked, partial(fit_network, "gru")),
}
"""The function that fits each kind, simplest first: of equals the first is taken.

Too short a history raises SeriesError.
"""


def default_kind(names: Iterable[str]) -> str:
    """Return the default candidate: "networked_blend" if it or "all" is among the names, else "blend", else the first.

    Raises:
        IndexError: there is no name.
    """
    among = list(names)
    if {"networked_blend", "all"} & set(among):
        return "networked_blend"
    return "blend" if "blend" in among else among[0]


def select_kinds(names: Iterable[str]) -> list[str]:
    """Return the kinds of forecaster that are asked for, each once, in the order of `CATALOGUE` (simplest first).

    Args:
        names: of kinds; "all" stands for every kind; without any the result is empty.

    Raises:
        SettingsError: a name is unknown; the message lists the known ones.
    """
    asked = set(names)
    if "all" in asked:
        return list(CATALOGUE)
    if unknown := sorted(asked - set(CATALOGUE)):
        raise SettingsError(f"model {unknown[0]!r} is unknown. Known ones: {', '.join(CATALOGUE)}, or all.")
    return [name for name in CATALOGUE if name in asked]
