"""The source paper's table beside ours, as text."""

from __future__ import annotations

import math
from typing import Any

from pipelines.bench.table2.models import PAPER
from pipelines.html.columns import aligned

PUBLISHED: dict[tuple[str, int], dict[str, float | None]] = {
    ("IoT traffic", 300): {"gru": 5.37, "cnn": 5.64, "arima": 6.79, "prophet": 7.07},
    ("IoT traffic", 120): {"gru": 5.24, "cnn": 5.35, "arima": 6.00, "prophet": 7.14},
    ("IoT traffic", 60): {"gru": 5.10, "cnn": 5.13, "arima": 5.67, "prophet": 7.06},
    ("green taxi", 300): {"gru": 1.34, "cnn": 2.26, "arima": 2.19, "prophet": 4.85},
    ("green taxi", 120): {"gru": 1.82, "cnn": 1.81, "arima": 2.40, "prophet": 5.39},
    ("green taxi", 60): {"gru": 2.27, "cnn": 2.57, "arima": 2.74, "prophet": 5.19},
}
"""Table II of the paper, SMAPE in per cent; its second source is taxi trips of all providers, ours of green taxis."""
_HEADS = ["model", "paper", "half", "sum", "RMSE", "skill", "train s", "infer s", "CPU s", ""]
_COLUMNS = {
    "paper": 2, "smape_half": 2, "smape_sum": 2, "rmse": 0, "skill": 3, "train_s": 1, "infer_s": 1, "cpu_s": 1,
}  # fmt: skip
"""Digits after the point, by column."""


def format_table2(figures: dict[str, Any]) -> str:
    """Format the figures of `compute_table` as text: a block per series, models' orders, normalised errors."""
    floor = figures["noise_floor"]
    parts = [
        "SMAPE in per cent: 'half' divides by the mean of load and forecast and is what the paper's table holds, 'sum' "
        "is its printed formula;\n"
        f"skill is 1 - RMSE / RMSE of the last value. A forecast that knows the noise-free IoT signal has "
        f"{floor['smape_sum']:.3f} (sum), {floor['smape_half']:.3f} (half).",
        *(_block(cell, figures["rows"]) for cell in figures["cells"]),
        _orders(figures),
        _normalised(figures["normalised_rmse"]),
    ]
    return "\n\n".join(parts)


def sort_by_error(errors: dict[str, float | None]) -> list[str]:
    """Sort the paper's models that have an error, best first; one whose forecasts are no numbers (NaN) comes last."""
    ran = {model: error for model in PAPER if (error := errors.get(model)) is not None}
    return sorted(ran, key=lambda model: math.inf if math.isnan(ran[model]) else ran[model])


def _block(cell: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    source, step_s = cell["source"], cell["step_s"]
    title = f"{source}, {step_s // 60} min: {cell['training_rows']} rows for training, {cell['test_rows']} for the test"
    lines = [_HEADS]
    for row in rows:
        if (row["source"], row["step_s"]) == (source, step_s):
            scored = {"paper": PUBLISHED[source, step_s].get(row["model"]), **row}
            figures = [_number(scored[name], digits) for name, digits in _COLUMNS.items()]
            lines.append([row["model"], *figures, row["remark"]])
    return "\n".join([title + _asides(cell), *(line.rstrip() for line in aligned(lines, left={0, len(_HEADS) - 1}))])


def _asides(cell: dict[str, Any]) -> str:
    if cell["source"] == "IoT traffic":
        return ""
    least = cell["independent_rmse"]
    return (
        "\n(green taxis only, the paper had all providers: compare the order of the models, not values; were trips "
        f"independent,\nno forecast could have an RMSE under {least:.0f}; {cell['clipped']} values clipped at 0)"
    )


def _orders(found: dict[str, Any]) -> str:
    lines = ["The paper's models, best first:"]
    for cell in found["cells"]:
        key = cell["source"], cell["step_s"]
        ours = {r["model"]: r["smape_half"] for r in found["rows"] if (r["source"], r["step_s"]) == key}
        names = f"{cell['source']}, {cell['step_s'] // 60} min"
        lines.append(
            f"{names:20} paper: {' '.join(sort_by_error(PUBLISHED[key])):24} ours: {' '.join(sort_by_error(ours))}"
        )
    return "\n".join(lines)


def _normalised(shares: dict[str, dict[str, float]]) -> str:
    steps = list(next(iter(shares.values()), {}))
    lines = [["RMSE / mean MAE *", *(f"{int(step) // 60} min" for step in steps), "mean"]]
    for model, by_step in shares.items():
        mean = sum(by_step.values()) / len(by_step) if len(by_step) == len(steps) else None
        lines.append([model, *(_number(value, 3) for value in (*map(by_step.get, steps), mean))])
    note = "* mean absolute error of the paper's models at that step; the mean over the steps is the last column"
    return "\n".join([*aligned(lines), note])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
