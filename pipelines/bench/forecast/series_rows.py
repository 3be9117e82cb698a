"""Evaluations of many series as flat rows: the tables that pages of the documentation show."""

from __future__ import annotations

from typing import Any

from pipelines.bench.forecast.cells import LARGE
from pipelines.bench.forecast.evaluate import CHAMPION

INTERVALS = ("0.8", "0.9", "0.95")


def series_rows(cells: list[dict[str, Any]], models: list[str]) -> list[dict[str, Any]]:
    """Return one flat row per series, those with most test steps first.

    Args:
        cells: a series each, as from `summarise_evaluation`.
        models: names whose ratio is shown, each in a column of its own; None where it was not fitted.

    Returns:
        Rows with the columns "series" (file or series name), "test rows" (* under 300), "best naive", per model its
        one-step RMSE ÷ the best naive forecast's, and of the champion (chosen on the training steps) "pinball ÷" (over
        all steps ahead, likewise) and "coverage off": of the 80, 90 and 95 % prediction interval the farthest of all
        steps ahead, in percentage points.

    Raises:
        KeyError: a dict is not as from `summarise_evaluation`.
        TypeError: a share covered is None.
    """
    ordered = sorted(cells, key=lambda cell: -cell["test_steps"])
    return [
        {
            "series": cell["cell"],
            "test rows": f"{cell['test_steps']:,}" + ("" if cell["test_steps"] >= LARGE else " *"),
            "best naive": cell["best_naive"].replace("_", " "),
            **{f"{model} ÷": cell["models"].get(model, {}).get("ratio") for model in models},
            "pinball ÷": cell["models"][CHAMPION]["pinball_ratio"],
            "coverage off": " / ".join(_farthest(cell["models"][CHAMPION]["coverage"], one) for one in INTERVALS),
        }
        for cell in ordered
    ]


def _farthest(coverage: dict[str, dict[str, float]], interval: str) -> str:
    """Say in percentage points how far the share covered is off, at the step ahead where it is off most."""
    off = [100 * (by[interval] - float(interval)) for by in coverage.values()]
    return f"{max(off, key=abs):+.1f}"
