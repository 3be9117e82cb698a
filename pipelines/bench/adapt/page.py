"""The adaptation study as one HTML file that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pipelines.bench.adapt.text import MODELS
from pipelines.html.document import NUMBER, PLAIN, document, holder, row, section, table
from pipelines.html.plot import Chart, line, rows, silent

_LINES = {
    "served": ("@forecast", "solid", 3.0),
    "no_source": ("@arrival", "dash", 2.0),
    "shrunk": ("@executors", "solid", 1.6),
    "adapted": ("@capacity", "solid", 1.6),
    "source_only": ("@bad", "dot", 1.6),
}
_WORSE = 1.05


def render(found: dict[str, Any], path: Path) -> Path:
    """Write the page; `found` are the `figures` of the study."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(found), encoding="utf-8")
    return path


def _page(found: dict[str, Any]) -> str:
    charts: dict[str, Chart] = {}
    parts = [
        "<h1>What other loads teach a new one</h1>",
        f'<p class="about">Every shipped load with steps of 5 minutes as the source of every other; {found["horizon"]} '
        f"steps ahead; {found['served_days']} days served after the history, from {found['cuts']} moment(s) per "
        "target. All figures are RMSE ÷ that of target only, which is the best of ridge, GRU and last value on the "
        "same history, chosen on that history. Below 1 is better.</p>",
    ]
    for days, data in found["days"].items():
        charts[f"ratios-{days}"] = _ratios(data)
        title = f"{days} day{'s' * (days != '1')} of history"
        note = (
            f"{data['pairs']} pairs. The shape was near enough in {data['kept']} of {data['cases']} cases; the gate "
            f"let the adapted network through in {data['accepted']}; {data['rows_from_source']:.0%} of the rows were "
            "served by a model that a source had a part in."
        )
        parts += [
            section(title, note, _models(found["horizon"], data)),
            section(
                f"All pairs, {title}",
                "Each line is sorted by itself, so pairs do not stand over one another. RMSE over all steps ahead.",
                holder(f"ratios-{days}", 340, "ratio to target only of every pair, a line per model"),
            ),
            section(
                f"Served, by target and source, {title}",
                "RMSE over all steps ahead, and under it one step ahead; ● where the source's shape was near enough.",
                _matrix(data["table"]),
            ),
        ]
    return document("Tidecast: what other loads teach a new one", "\n".join(parts), charts)


def _models(horizon: int, data: dict[str, Any]) -> str:
    titles = ["model", "1 step", "pairs > 1.05", "worst", f"1-{horizon} steps", "pairs > 1.05", "worst", "pairs"]
    kinds = [PLAIN, *[NUMBER] * (len(titles) - 1)]
    lines = []
    for name, said in MODELS.items():
        if name not in data["models"]:
            continue
        model = data["models"][name]
        cells = [escape(said)]
        for part in (model["1"], model["all"]):
            cells += [f"{part['geometric_mean']:.3f}", f"{part['worse_than_1.05']:.0%}", f"{part['worst']:.3f}"]
        lines.append(row([*cells, str(model["pairs"])], kinds, 'class="median"' if name == "served" else ""))
    best = data["hindsight"]
    after = ["served ÷ the best own model afterwards", f"{best['1']:.3f}", "", "", f"{best['all']:.3f}", "", "", ""]
    return table(titles, kinds, [*lines, row(after, kinds)], 'class="wide"')


def _ratios(data: dict[str, Any]) -> Chart:
    """Every pair's ratio over all steps ahead, sorted, a line per model; on a logarithmic axis."""
    drawn = [silent(line([1, data["pairs"]], [1, 1], "", "@other", dash="dash", width=1))]
    for name, (colour, dash, width) in _LINES.items():
        known = sorted(one["ratios"][name]["all"] for one in data["table"] if name in one["ratios"])
        if known:
            drawn.append(line(list(range(1, len(known) + 1)), known, MODELS[name], colour, dash=dash, width=width))
    layout = rows([("RMSE ÷ target only", 1.0)])
    layout["xaxis"] |= {"title": {"text": "pairs, best first", "font": {"size": 13}}}
    ticks = [0.25, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 4, 8]
    layout["yaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    return {"data": drawn, "layout": layout}


def _matrix(pairs: list[dict[str, Any]]) -> str:
    names = sorted({pair["target"] for pair in pairs} | {pair["source"] for pair in pairs})
    at = {(pair["target"], pair["source"]): pair for pair in pairs}
    kinds = [PLAIN, *[NUMBER] * len(names)]
    lines = [
        row([escape(target), *(_cell(at.get((target, source))) for source in names)], kinds)
        for target in names
        if any((target, source) in at for source in names)
    ]
    return table(["target \\ source", *names], kinds, lines, 'class="wide"')


def _cell(pair: dict[str, Any] | None) -> str:
    if pair is None:
        return ""
    served = pair["ratios"]["served"]
    mark = "● " if pair["kept"] else ""
    kind = "bad" if served["all"] > _WORSE else "good" if served["all"] < 1 / _WORSE else ""
    return f'{mark}<span class="{kind}">{served["all"]:.2f}</span><div class="sub">{served["1"]:.2f}</div>'
