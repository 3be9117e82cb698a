"""An evaluation as plain text for the terminal."""

from __future__ import annotations

from typing import Any

from pipelines.html.columns import aligned
from pipelines.html.numbers import number, share
from pipelines.traces.series_file import step_name


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
    lines = [titles(last), *(cells(name, model, last) for name, model in best_first(found))]
    why = [f"{name} was skipped: {reason}" for name, reason in found["skipped"].items()]
    return "\n".join([described(found), verdict(found), "", *aligned(lines), *([""] if why else []), *why])


def titles(last: int) -> list[str]:
    """Of the columns, where so many steps ahead were forecast."""
    ahead = (f"{score} +{h}" for h in (1, last) for score in ("RMSE", "skill"))
    return ["model", *ahead, "WAPE +1", "pinball", "80 %", "90 %", "95 %", "train s", "predict µs"]


def best_first(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every model by its name, the lowest RMSE one step ahead first."""
    return sorted(found["models"].items(), key=lambda pair: pair[1]["horizons"]["1"]["rmse"] or float("inf"))


def cells(name: str, model: dict[str, Any], last: int) -> list[str]:
    """A model's figures as text, in the order of the columns."""
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
