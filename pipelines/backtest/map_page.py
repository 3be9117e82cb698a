"""The value map as one HTML file: is forecasting worth it for this job?"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from models.twin.experiment.value import LIKE_REACTIVE, TOO_DEAR
from pipelines.backtest import map_text as words
from pipelines.html.document import NUMBER, PLAIN, Tile, below, document, holder, row, section, table, tile_row
from pipelines.html.numbers import number, share
from pipelines.html.plot import Chart, line, marks, rows, silent

_GOALS = {"captured": 0.5, "like_reactive": 0.95, "against_defaults": 0.75, "against_optimum": 1.15}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
_COLOURS = ("@other", "@arrival", "@executors", "@capacity", "@bad")


def render(found: dict[str, Any], path: Path) -> Path:
    """Write the page; `found` is a value map."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(found), encoding="utf-8")
    return path


def _page(found: dict[str, Any]) -> str:
    name = words.headline(found)
    figures: dict[str, Chart] = {}
    verdict = "".join(f"<p>{escape(line)}</p>" for line in [*words.verdict(found), *words.adds(found)])
    parts = [
        "<h1>Is forecasting worth it for this job?</h1>",
        f'<p class="about">{len(found["traces"])} loads, replayed for up to {found["test_days"]:g} days each in a '
        "simulated job, under policies that only react, under ours, and under ours with the true future. All are "
        "compared where the same share of the seconds has a record that came too late; every policy's knob is the "
        f"cheapest one in hindsight. {found['seeds']} seeds.</p>",
        f'<div class="verdict">{verdict}</div>',
    ]
    if name is not None:
        parts.append(tile_row(_tiles(name, found["summary"][name])))
    for allowed in found["violations"]:
        parts.append(
            section(
                f"What there is to save with {share(allowed, 1)} of the seconds over the target",
                "Large: what knowing the future saves against the best policy that only reacts. Small: what ours "
                f"({name}) saves, and which reactive policy was the best. The longer executors take, the more a "
                "forecast is worth; on a smooth load with quick executors it is worth nothing. A dash: no policy that "
                "only reacts keeps the promise.",
                _matrix(found, name, allowed),
            )
        )
    if name is not None:
        figures["saved"] = _saved(found, name)
        parts.append(
            section(
                "What ours saves of what could be saved",
                "A mark per load, lead time and allowed share. On the upper line all is captured; below zero ours is "
                "dearer than the best reactive policy.",
                holder("saved", 460, "saving by ours against saving by the true future"),
            )
        )
        parts.append(section("Against what people run", _shipped_note(), _shipped(found)))
    sums = "".join(f"<p>{escape(line)}</p>" for n, one in found["summary"].items() for line in words.summed(n, one))
    left_out = "".join(f"<p>{escape(n)} was left out: {escape(why)}</p>" for n, why in found["left_out"].items())
    parts.append(section("In figures", "", sums + left_out))
    return document("Tidecast: what a forecast is worth", "\n".join(parts), figures)


def _tiles(name: str, one: dict[str, Any]) -> list[Tile]:
    flat, dear = one["nothing_to_gain"], one["all"]["too_dear"]
    like = flat["like_reactive"]
    return [
        Tile(
            "captured", number(one["captured"], 2), "of the gap", f"by {name}, median of {one['gap_cells']} cells",
            _reached(one["captured"], "captured"),
        ),
        Tile(
            "nothing to gain", share(like), f"≤ {LIKE_REACTIVE} ×",
            f"of {flat['cells']} cells; {dear} of all above {TOO_DEAR} ×", _reached(like, "like_reactive"),
        ),
        Tile(
            "against defaults", number(one["against_defaults"], 2), "×", "executor-hours at their violation, median",
            _reached(one["against_defaults"], "against_defaults", least=False),
        ),
        Tile(
            "against the optimum", number(one["against_optimum"], 3), "×", "at 60 s and 1 %, median",
            _reached(one["against_optimum"], "against_optimum", least=False),
        ),
    ]  # fmt: skip


def _reached(value: float | None, goal: str, least: bool = True) -> bool | None:
    if value is None:
        return None
    return value >= _GOALS[goal] if least else value <= _GOALS[goal]


def _matrix(found: dict[str, Any], name: str | None, allowed: float) -> str:
    by = {(cell["trace"], cell["lead_s"]): cell for cell in found["cells"] if cell["violation"] == allowed}
    titles = ["load", *(f"{lead:g} s to start" for lead in found["leads_s"])]
    kinds = [PLAIN, *[NUMBER] * len(found["leads_s"])]
    lines = [
        row([escape(trace), *(_shown(by.get((trace, lead)), name) for lead in found["leads_s"])], kinds)
        for trace in found["traces"]
    ]
    return table(titles, kinds, lines, 'class="wide whole"')


def _shown(cell: dict[str, Any] | None, name: str | None) -> str:
    if cell is None or cell["gap"] is None:
        return "–"
    deep = round(min(max(cell["gap"], 0.0) / 0.4, 1.0) * 35)
    ratio = cell["ratio"].get(name)
    ours = "breaks it" if ratio is None else f"ours {round(100 * (1 - ratio)):+d} %"
    colour = f"background:color-mix(in srgb, var(--good) {deep}%, transparent)"
    said = f"{round(100 * cell['gap'])} %" + below(f"{ours}; {cell['best_reactive']}")
    return f'<div style="{colour};padding:2px 6px;border-radius:4px">{said}</div>'


def _saved(found: dict[str, Any], name: str) -> Chart:
    """Saving by ours against saving by the true future, a colour per lead time."""
    cells = [cell for cell in found["cells"] if cell["gap"] is not None and cell["ratio"].get(name) is not None]
    most = 100 * max((cell["gap"] for cell in cells), default=0.1)
    data = [
        silent(line([0, most], [0, most], "", "@good", width=1, dash="dash")),
        silent(line([0, most], [0, most / 2], "", "@other", width=1, dash="dot")),
    ]
    for lead, symbol, colour in zip(found["leads_s"], _SYMBOLS, _COLOURS, strict=False):
        mine = [cell for cell in cells if cell["lead_s"] == lead]
        text = [f"{c['trace']}, {share(c['violation'], 1)}: {c['best_reactive']}" for c in mine]
        x, y = [100 * c["gap"] for c in mine], [100 * (1 - c["ratio"][name]) for c in mine]
        data.append(
            {**marks(x, y, f"{lead:g} s", symbol, colour, text), "hovertemplate": "%{text}<br>%{x:.1f} / %{y:.1f} %"}
        )
    layout = rows([(f"saved by {name}, % of the best reactive policy's hours", 1.0)])
    layout["xaxis"] |= {"title": {"text": "saved by knowing the future, %", "font": {"size": 13}}, "zeroline": True}
    layout["yaxis"] |= {"zeroline": True, "rangemode": "normal"}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def _shipped_note() -> str:
    return (
        "Executor-hours of ours ÷ those of policies as they are shipped, no sweep, at the violation that each of them "
        "happens to have; the median over loads."
    )


def _shipped(found: dict[str, Any]) -> str:
    names, leads = list(found["summary"]), found["leads_s"]
    titles = ["as shipped", "ours", *(f"{lead:g} s" for lead in leads)]
    kinds = [PLAIN, PLAIN, *[NUMBER] * len(leads)]
    lines = []
    for default in dict.fromkeys(one["policy"] for one in found["as_shipped"]):
        for name in names:
            cells = [number(_median(found, default, name, lead), 2) for lead in leads]
            lines.append(row([escape(default), escape(name), *cells], kinds))
    return table(titles, kinds, lines)


def _median(found: dict[str, Any], default: str, name: str, lead: float) -> float | None:
    ratios = sorted(
        one["ratio"][name]
        for one in found["as_shipped"]
        if one["policy"] == default and one["lead_s"] == lead and one["ratio"].get(name) is not None
    )
    return ratios[len(ratios) // 2] if ratios else None
