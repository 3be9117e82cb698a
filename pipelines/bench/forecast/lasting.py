"""Shipped loads that change for good: how soon forecasts are no worse than the last value again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from models.forecast.core.bootstrap import rmse_ratio
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import Floats, Series
from models.forecast.selection.backtest import roll
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.bench.forecast.cells import LARGE, in_processes
from pipelines.bench.forecast.evaluate import LEVELS, TRAINED
from pipelines.traces.shipped import find, shipped

FACTORS = {"÷ 30": 1 / 30, "× 2": 2.0}
"""What the load is multiplied by from the break on."""
LEAST_DAYS = 3
"""A load is followed for at least so many days after its break."""
SPANS = ("first day", "second day", "after the first day")


def measure_all(model: str, jobs: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """`measure` of every shipped cell in `jobs` processes; `tell` is told of each as it is done."""
    return in_processes(partial(measure, model=model), [cell.cell for cell in shipped()], jobs, tell)


def measure(cell: str, model: str) -> dict[str, Any]:
    """One cell's figures as JSON values.

    The break comes where the newest fifth of the series begins, or `LEAST_DAYS` days before the end if that is earlier.
    Models are fitted to what is before it and stepped through the rest. `breaks` holds per factor the one-step RMSE as
    a multiple of the last value's over each of `SPANS`, and `between`, its 95 % interval after the first day.
    """
    series = find(cell).series()
    task = Task(series.step_s, 12, LEVELS)
    rows = max(len(series) - int(TRAINED * len(series)), LEAST_DAYS * task.day)
    older, held = series.split(rows)
    fitted = [CATALOGUE[name](task, older) for name in (model, "last_value")]
    breaks = {}
    for name, factor in FACTORS.items():
        broken = Series(held.start, held.step_s, factor * held.values)
        mine, still = (_errors(forecaster, older, broken) for forecaster in fitted)
        days = slice(0, task.day), slice(task.day, 2 * task.day), slice(task.day, None)
        ratios = {span: _rms(mine[part]) / _rms(still[part]) for span, part in zip(SPANS, days, strict=True)}
        between = rmse_ratio(mine[task.day :], still[task.day :], np.random.default_rng(0))
        breaks[name] = {**ratios, "between": list(between)}
    judged = rows - task.day
    return {"cell": cell, "before": len(older), "judged": judged, "large": judged >= LARGE, "breaks": breaks}


def summary(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Per factor and span the geometric mean over all cells and the worst cell; `worse` at 95 % after the first day."""
    found: dict[str, Any] = {}
    for name in FACTORS:
        by_span: dict[str, Any] = {}
        for span in SPANS:
            ratios = {cell["cell"]: cell["breaks"][name][span] for cell in cells}
            worst = max(ratios, key=lambda cell: ratios[cell])
            mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
            by_span[span] = {"mean": mean, "worst": {"cell": worst, "ratio": ratios[worst]}}
        worse = [cell["cell"] for cell in cells if cell["breaks"][name]["between"][0] > 1]
        found[name] = {**by_span, "worse": worse}
    return found


def table(cells: list[dict[str, Any]], sums: dict[str, Any]) -> str:
    """A line per cell, and under them what all came to."""
    titles = "".join(f"{name + ': first':>14}{'second':>8}{'after':>7}{'95 %':>14}" for name in FACTORS)
    lines = [f"{'cell':18}{'rows':>10}  {titles}"]
    for cell in cells:
        said = f"{cell['cell']:18}{cell['judged']:>10,}" + ("  " if cell["large"] else " *")
        for name in FACTORS:
            first, second, after = (cell["breaks"][name][span] for span in SPANS)
            low, high = cell["breaks"][name]["between"]
            said += f"{first:14.2f}{second:8.2f}{after:7.2f}{f'{low:.2f}–{high:.2f}':>14}"
        lines.append(said)
    lines.append("")
    for name, found in sums.items():
        for span in SPANS:
            worst = found[span]["worst"]
            lines.append(
                f"load {name}, {span}: {found[span]['mean']:.3f} × last value in the geometric mean, "
                f"at worst {worst['ratio']:.3f} ({worst['cell']})"
            )
        lines.append(f"  worse at 95 % after the first day: {', '.join(found['worse']) or 'none'}")
    return "\n".join(lines)


def _errors(forecaster: Forecaster, older: Series, held: Series) -> Floats:
    """(T,) errors one step ahead."""
    made = roll(forecaster, older, held)
    return np.asarray(made.median[:, 0] - made.actual[:, 0])


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.nanmean(errors**2)))
