"""An evaluation as plain text for the terminal."""

from __future__ import annotations

from typing import Any

from pipelines.html.columns import aligned
from pipelines.html.numbers import number, share
from pipelines.traces.series_file import step_name

COLUMNS = (
    "model",
    "RMSE +1",
    "skill +1",
    "RMSE +{last}",
    "skill +{last}",
    "WAPE +1",
    "pinball",
    "80 %",
    "90 %",
    "95 %",
)


def described(found: dict[str, Any]) -> str:
    """One line: what was evaluated."""
    step = step_name(found["step_s"])
    return (
        f"{found['series']}: {number(found['test_steps'])} test rows of {step} after {number(found['train_steps'])} of "
        f"training, {found['horizon']} steps ahead"
    )


def verdict(found: dict[str, Any]) -> str:
    """Who was chosen, and what it is worth."""
    kind, naive = found["champion"].replace("_", " "), found["best_naive"].replace("_", " ")
    mine = found["models"]["champion"]["horizons"]["1"]
    least = found["models"][found["best_naive"]]["horizons"]["1"]["rmse"]
    said = f"Champion is {kind}: one step ahead its RMSE is {mine['rmse']:.4g}"
    if not least:
        return f"{said}; the best naive forecast ({naive}) makes no error."
    return f"{said}, {mine['rmse'] / least:.3f} times that of the best naive forecast ({naive})."


def table(found: dict[str, Any]) -> str:
    """A line per model, the best RMSE first."""
    last = found["horizon"]
    titles = [title.format(last=last) for title in (*COLUMNS, "train s", "predict µs")]
    models = sorted(found["models"].items(), key=lambda pair: pair[1]["horizons"]["1"]["rmse"] or float("inf"))
    lines = [titles, *(cells(name, model, last) for name, model in models)]
    rows = aligned(lines)
    why = [f"{name} was skipped: {reason}" for name, reason in found["skipped"].items()]
    return "\n".join([described(found), verdict(found), "", *rows, *([""] if why else []), *why])


def cells(name: str, model: dict[str, Any], last: int) -> list[str]:
    """A model's figures as text, in the order of the columns."""
    first, far = model["horizons"]["1"], model["horizons"][str(last)]
    covered = [number_of(first["coverage"].get(key), 100, 1) for key in ("0.8", "0.9", "0.95")]
    title = name if name == model["kind"] else f"{name} ({model['kind']})"
    return [
        title,
        *(
            number_of(first["rmse"], 1, 4),
            share(first["skill"], 1),
            number_of(far["rmse"], 1, 4),
            share(far["skill"], 1),
        ),
        *(share(first["wape"], 2), number_of(model["pinball"], 1, 4)),
        *covered,
        *(f"{model['train_s']:.2f}", f"{model['predict_us']:.0f}"),
    ]


def number_of(value: float | None, factor: float, digits: int) -> str:
    """A figure times a factor: so many digits in all, or so many after the point where it is a per cent."""
    if value is None:
        return "–"
    if factor == 100:
        return f"{value * factor:.{digits}f}"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
