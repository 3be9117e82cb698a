"""What a network adds to the blend that carries it: over many series, beside the blend alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.forecast.blend.networked import NetworkedBlend
from models.forecast.core.series import Series
from pipelines.bench.twin.drawn import half_of

CARRIES = 0.1
"""Mean share of the weight from which a network counts as carrying a series."""


def mean_share(forecaster: NetworkedBlend, older: Series, held: Series) -> float:
    """Return the network's mean share (0..1) of the forecasts that are issued before each held-out step.

    Args:
        forecaster: its network trained on what comes before `held`.
        older: what it sees before the first forecast.
        held: the steps that follow; NaN: missing.

    Raises:
        SeriesError: the history has another step than the forecaster, or a load is negative or infinite.
    """
    track = forecaster.begin(older)
    shares = [float(track.kept.mix.shares.mean())]
    for value in held.values[:-1].tolist():
        track.step(value)
        shares.append(float(track.kept.mix.shares.mean()))
    return float(np.mean(shares))


def summarise_networks(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise what networks add to the blend, over the series on which both were evaluated.

    Args:
        cells: a series each, as from `summarise_evaluation`.

    Returns:
        `cells`, how many; of the mean pinball loss ÷ that of the blend alone `ratio`, the geometric mean, `large`,
        that over series with 300 test steps or more, `worst` and `best`, dicts of `cell` and `ratio` over these, and
        `halves`, the geometric mean of either half of the series (by a hash of their names); `carried`, series in which
        the network's share of the weight is at least 10 % in the mean. None where there is no such series.
    """
    both = [(cell, cell["models"]) for cell in cells if {"blend", "networked_blend"} <= set(cell["models"])]
    ratios = {cell["cell"]: rows["networked_blend"]["pinball"] / rows["blend"]["pinball"] for cell, rows in both}
    large = {cell["cell"]: ratios[cell["cell"]] for cell, _ in both if cell["large"]}
    halves = {half: [r for name, r in ratios.items() if half_of(name.split()[0]) == half] for half in (1, 2)}
    shares = [rows["networked_blend"]["network_share"] or 0.0 for _, rows in both]
    worst, best = (max(large, key=large.__getitem__, default=None), min(large, key=large.__getitem__, default=None))
    return {
        "cells": len(ratios),
        "ratio": _mean(list(ratios.values())),
        "large": _mean(list(large.values())),
        "worst": None if worst is None else {"cell": worst, "ratio": large[worst]},
        "best": None if best is None else {"cell": best, "ratio": large[best]},
        "halves": {str(half): _mean(found) for half, found in halves.items()},
        "carried": sum(share >= CARRIES for share in shares),
    }


def _mean(ratios: list[float]) -> float | None:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None
