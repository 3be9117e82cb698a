"""Every kind of forecaster by name, and how each is fitted to a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from configs.errors import SettingsError
from models.forecast.classical_fit import fit_classical
from models.forecast.forecaster import Forecaster, Task
from models.forecast.naive import Naive
from models.forecast.series import Series

Fit = Callable[[Task, Series], Forecaster]
NAIVE = ("last_value", "yesterday", "seasonal_naive")
"""What needs no fitting, and what every other kind is compared with."""


def _naive(seasonal: bool, weekly: bool, task: Task, history: Series) -> Forecaster:
    return Naive(task, seasonal, weekly)


CATALOGUE: dict[str, Fit] = {
    "last_value": partial(_naive, False, False),
    "yesterday": partial(_naive, True, False),
    "seasonal_naive": partial(_naive, True, True),
    "ets": partial(fit_classical, "ets"),
    "theta": partial(fit_classical, "theta"),
    "arima": partial(fit_classical, "arima"),
}
"""Cheapest first. A fit is a pure function of task and history; too short a history raises SeriesError."""


def named(names: Iterable[str]) -> list[str]:
    """The names, each once and in the catalogue's order; "all" stands for all of them.

    Raises:
        SettingsError: an unknown name; the message lists those there are.
    """
    asked = set(names)
    if "all" in asked:
        return list(CATALOGUE)
    if unknown := sorted(asked - set(CATALOGUE)):
        raise SettingsError(f"model {unknown[0]!r} is unknown. Known ones: {', '.join(CATALOGUE)}, or all.")
    return [name for name in CATALOGUE if name in asked]
