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
from pipelines.bench.forecast.cells import LARGE, map_in_processes
from pipelines.bench.forecast.evaluate import LEVELS, TRAINED
from pipelines.html.columns import aligned
from pipelines.traces.shipped import find_shipped, list_shipped

FACTORS = {"÷ 30": 1 / 30, "× 2": 2.0}
"""What the load is multiplied by from the break on."""
LEAST_DAYS = 3
"""A load is followed for at least so many days after its break."""
SPANS = ("first day", "second day", "after the first day")


def evaluate_breaks_of_all(model: str, processes: int, report_progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run `evaluate_breaks` on every shipped series and step, in so many processes, with a line of progress each.

    Raises:
        KeyError: an unknown model.
        SeriesError: see `evaluate_breaks`.
    """
    return map_in_processes(
        partial(evaluate_breaks, model=model), [shipped.label for shipped in list_shipped()], processes, report_progress
    )


def evaluate_breaks(label: str, model: str) -> dict[str, Any]:
    """Compare a model's one-step errors with the last value's after the load was changed for good.

    From the break on the load is multiplied by each of FACTORS (1/30 and 2). The break comes where the newest fifth of
    the series begins, or 3 days before its end if that is earlier. Models are fitted to what is before it.

    Args:
        label: a shipped series, e.g. "iot 5min".
        model: its name in the catalogue.

    Returns:
        `cell` (the label), `before` (steps before the break), `judged` (steps after the first day), `large` (whether
        those are 300 or more), and `breaks`: by factor, as in FACTORS, RMSE ÷ the last value's over each of SPANS, and
        `between`, [low, high], its 95 % bootstrap interval after the first day. Missing steps are left out.

    Raises:
        SeriesError: no such series, or it is too short for the model.
        KeyError: no such model.
        ZeroDivisionError: the last value makes no error.
    """
    series = find_shipped(label).series()
    task = Task(series.step_s, 12, LEVELS)
    rows = max(len(series) - int(TRAINED * len(series)), LEAST_DAYS * task.day)
    older, held = series.split(rows)
    fitted = [CATALOGUE[name](task, older) for name in (model, "last_value")]
    breaks = {}
    for name, factor in FACTORS.items():
        broken = Series(held.start, held.step_s, factor * held.values)
        errors, last_value_errors = (_errors(forecaster, older, broken) for forecaster in fitted)
        days = slice(0, task.day), slice(task.day, 2 * task.day), slice(task.day, None)
        ratios = {
            span: _rms(errors[part]) / _rms(last_value_errors[part]) for span, part in zip(SPANS, days, strict=True)
        }
        between = rmse_ratio(errors[task.day :], last_value_errors[task.day :], np.random.default_rng(0))
        breaks[name] = {**ratios, "between": list(between)}
    judged = rows - task.day
    return {"cell": label, "before": len(older), "judged": judged, "large": judged >= LARGE, "breaks": breaks}


def summarise_breaks(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise `evaluate_breaks` over all series.

    Args:
        cells: as from `evaluate_breaks`, a series each, at least one.

    Returns:
        By factor: by span `mean` (geometric, of RMSE ÷ the last value's) and `worst` (`cell`, the series, and `ratio`
        where that is largest); `worse`, the series where its whole 95 % bootstrap interval after the first day is above
        1.

    Raises:
        ValueError, KeyError: there is no series, or a dict is not as from `evaluate_breaks`.
    """
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


def format_breaks(cells: list[dict[str, Any]], sums: dict[str, Any]) -> str:
    """Format breaks as text: a line per series (* for fewer than 300 judged steps) and, under them, the summary.

    Numbers are one-step RMSE ÷ the last value's; "95 %" is the bootstrap interval after the first day.

    Args:
        cells: as from `evaluate_breaks`.
        sums: as from `summarise_breaks`.
    """
    lines = [["cell", "rows", *(title for name in FACTORS for title in (f"{name}: first", "second", "after", "95 %"))]]
    for cell in cells:
        shown = [cell["cell"], f"{cell['judged']:,}" + ("" if cell["large"] else " *")]
        for breaks in cell["breaks"].values():
            low, high = breaks["between"]
            shown += [*(f"{breaks[span]:.2f}" for span in SPANS), f"{low:.2f}–{high:.2f}"]
        lines.append(shown)
    lines_of_text = [*aligned(lines), ""]
    for name, found in sums.items():
        for span in SPANS:
            worst = found[span]["worst"]
            lines_of_text.append(
                f"load {name}, {span}: {found[span]['mean']:.3f} × last value in the geometric mean, "
                f"at worst {worst['ratio']:.3f} ({worst['cell']})"
            )
        lines_of_text.append(f"  worse at 95 % after the first day: {', '.join(found['worse']) or 'none'}")
    return "\n".join(lines_of_text)


def _errors(forecaster: Forecaster, older: Series, held: Series) -> Floats:
    """(T,) errors one step ahead."""
    made = roll(forecaster, older, held)
    return np.asarray(made.median[:, 0] - made.actual[:, 0])


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.nanmean(errors**2)))
