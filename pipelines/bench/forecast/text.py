"""An evaluation as plain text for the terminal: of one series, or of many cells."""

from __future__ import annotations

import math
from typing import Any

from pipelines.bench.forecast.cells import LARGE
from pipelines.html.columns import aligned
from pipelines.html.numbers import number, share
from pipelines.traces.series_file import format_step

Cells = list[dict[str, Any]]


def describe_evaluation(figures: dict[str, Any]) -> str:
    """Say in one line which series was evaluated on how many steps, from `score_evaluation`."""
    step = format_step(figures["step_s"])
    return (
        f"{figures['series']}: {number(figures['test_steps'])} test rows of {step} after "
        f"{number(figures['train_steps'])} of training, {figures['horizon']} steps ahead"
    )


def verdict_sentence(figures: dict[str, Any]) -> str:
    """Say in a sentence which model is the champion (chosen on the training steps), and its one-step RMSE.

    The RMSE is also given ÷ that of the naive forecast with the lowest, unless that makes no error.

    Args:
        figures: as from `score_evaluation`; TypeError where no test step has a known outcome.
    """
    kind, naive = figures["champion"].replace("_", " "), figures["best_naive"].replace("_", " ")
    champion = figures["models"]["champion"]["horizons"]["1"]
    least = figures["models"][figures["best_naive"]]["horizons"]["1"]["rmse"]
    sentence = f"Champion is {kind}: one step ahead its RMSE is {champion['rmse']:.4g}"
    if not least:
        return f"{sentence}; the best naive forecast ({naive}) makes no error."
    return f"{sentence}, {champion['rmse'] / least:.3f} times that of the best naive forecast ({naive})."


def format_evaluation(figures: dict[str, Any]) -> str:
    """Format one evaluation as text: the verdict, a line per model by RMSE, and why models were skipped.

    Errors are in the series' unit; skill is 1 − RMSE ÷ that of the naive forecast that is best so many steps ahead.

    Args:
        figures: as from `score_evaluation`; TypeError where no test step has a known outcome.
    """
    last = figures["horizon"]
    lines = [column_titles(last), *(format_model(name, model, last) for name, model in sort_by_rmse(figures))]
    why = [f"{name} was skipped: {reason}" for name, reason in figures["skipped"].items()]
    return "\n".join(
        [describe_evaluation(figures), verdict_sentence(figures), "", *aligned(lines), *([""] if why else []), *why]
    )


def column_titles(last: int) -> list[str]:
    """List the column titles of an evaluation's table; `last` is the horizon in steps."""
    ahead = (f"{score} +{h}" for h in (1, last) for score in ("RMSE", "skill"))
    return ["model", *ahead, "WAPE +1", "pinball", "80 %", "90 %", "95 %", "train s", "predict µs"]


def sort_by_rmse(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List (name, figures) of an evaluation's models by RMSE one step ahead, lowest first, those without one last.

    Args:
        figures: as from `score_evaluation`.
    """

    def rmse(pair: tuple[str, dict[str, Any]]) -> float:
        value = pair[1]["horizons"]["1"]["rmse"]
        return math.inf if value is None else float(value)

    return sorted(figures["models"].items(), key=rmse)


def format_model(name: str, model: dict[str, Any], last: int) -> list[str]:
    """Format a model's figures as cells in the order of `column_titles`; a score that is None becomes a dash.

    Args:
        name: of the model.
        model: its part of `score_evaluation`.
        last: the horizon in steps.
    """
    first, far = model["horizons"]["1"], model["horizons"][str(last)]
    return [
        name if name == model["kind"] else f"{name} ({model['kind']})",
        _four(first["rmse"]),
        share(first["skill"], 1),
        _four(far["rmse"]),
        share(far["skill"], 1),
        share(first["wape"], 2),
        _four(model["pinball"]),
        *(share(first["coverage"].get(key), 1).removesuffix(" %") for key in ("0.8", "0.9", "0.95")),
        f"{model['train_s']:.2f}",
        f"{model['predict_us']:.0f}",
    ]


def _four(value: float | None) -> str:
    """To four digits; a dash for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def format_evaluations(cells: Cells, sums: dict[str, dict[str, Any]]) -> str:
    """Format evaluations of many series as text: a line per series, and under them each model's summary.

    A column "÷" is a model's one-step RMSE ÷ the best naive forecast's, then ÷ the published one; "95 % interval" is
    its bootstrap interval.

    Args:
        cells: as from `summarise_evaluation`; those marked * have fewer than 300 test steps.
        sums: `summarise_model` by model, at least one; of the last, pinball loss, training time and interval are shown.
    """
    models = list(sums)
    titles = ["cell", "test rows", "best naive", "RMSE", *(f"{name} ÷" for name in models)]
    titles += ["95 % interval", "chosen", "published", *(f"{name} ÷" for name in models), "pinball ÷", "train s"]
    lines = [titles, *(_cell(cell, models) for cell in cells)]
    rows = aligned(lines, left={0, 2, 5 + len(models)})
    return "\n".join([*rows, "", *(said for name in models for said in _sum(name, sums[name]))])


def _cell(cell: dict[str, Any], models: list[str]) -> list[str]:
    rows, last = cell["models"], models[-1]
    low, high = rows.get(last, {}).get("between") or (float("nan"),) * 2
    said = cell["published"]
    return [
        cell["cell"],
        f"{cell['test_steps']:,}" + ("" if cell["large"] else " *"),
        cell["best_naive"],
        f"{rows[cell['best_naive']]['rmse']:,.4g}",
        *(_of(rows, name, "ratio") for name in models),
        f"{low:.2f}–{high:.2f}",
        cell["champion"],
        f"{said['rmse']:,}" if said else "",
        *(_of(rows, name, "published_ratio") for name in models),
        _of(rows, last, "pinball_ratio"),
        f"{rows[last]['train_s']:.1f}" if last in rows else "",
    ]


def _of(rows: dict[str, Any], name: str, key: str) -> str:
    value = rows.get(name, {}).get(key)
    return "" if value is None else f"{value:.3f}"


def _sum(name: str, found: dict[str, Any]) -> list[str]:
    if not found["cells"]:
        return [f"{name}: could be fitted to no cell"]
    said = [
        f"{name}, geometric means over {found['cells']} cells: one-step RMSE {found['ratio']:.3f} × best naive, mean "
        f"pinball loss {found['pinball_ratio']:.3f} × best naive",
    ]
    if found["worst"]:
        said.append(f"  worst cell of ≥ {LARGE} test rows: {found['worst']['cell']}, {found['worst']['ratio']:.3f}")
    said.append(f"  smaller cells (*) worse at 95 %: {', '.join(found['worse']) or 'none'}")
    if found["published_ratio"]:
        said.append(f"  {found['published_ratio']:.3f} × the best published method, scored as its authors did")
    for key, off in found["coverage"].items():
        if off:
            said.append(
                f"  {100 * float(key):g} % interval: off by {off['median']:.1f} points in the median, "
                f"{off['worst']:+.1f} at worst"
            )
    said.append(f"  longest training {found['train_s']:.1f} s, median prediction {found['predict_us']:.0f} µs")
    return said
