"""An evaluation as one HTML file that holds everything it needs and opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pipelines.bench.forecast import evaluation_charts as charts
from pipelines.bench.forecast import text as words
from pipelines.bench.forecast.evaluate import CHAMPION, Evaluation
from pipelines.html.document import NUMBER, PLAIN, document, holder, row, section, table
from pipelines.html.plot import Chart
from pipelines.traces.series_file import format_step


def write_page(evaluation: Evaluation, figures: dict[str, Any], path: Path) -> Path:
    """Write the page to a file, in a new folder if need be, and return its path.

    Args:
        evaluation: of one series.
        figures: its scores, as from `score_evaluation`.
        path: of the HTML file; an older one is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(evaluation, figures), encoding="utf-8")
    return path


def _page(evaluation: Evaluation, found: dict[str, Any]) -> str:
    name, horizon = CHAMPION, evaluation.task.horizon
    shown = evaluation.champion.replace("_", " ")
    ahead = sorted({1, (horizon + 1) // 2, horizon})
    figures: dict[str, Chart] = {f"fan-{h}": charts.draw_fan(evaluation, name, h) for h in ahead}
    figures |= {f"horizon-{m}": charts.draw_by_horizon(evaluation, found, m) for m in charts.MEASURES}
    figures |= {
        "calibration": charts.draw_calibration(evaluation, name),
        "covered": charts.draw_coverage(evaluation, found, name),
    }
    step = format_step(found["step_s"])
    parts = [
        f"<h1>Forecasts of {escape(found['series'])}</h1>",
        f'<p class="about">{escape(words.describe_evaluation(found))}.</p>',
        f'<p class="verdict">{escape(words.verdict_sentence(found))}</p>',
        section(
            "Every model",
            "Lowest RMSE first. Skill is 1 − RMSE ÷ that of the best naive forecast so many steps ahead. The pinball "
            "loss is the mean over all steps ahead; the intervals are those of one step ahead.",
            _models(found),
        ),
        section(
            f"What the champion, {shown}, forecast",
            f"As it was forecast so many steps of {step} before, over the newest {charts.SHOWN} test rows at most.",
            _buttons("fan", {f"fan-{h}": f"{h} ahead" for h in ahead})
            + holder("fan-1", 360, "forecast bands and what came", "fan"),
        ),
        section(
            "Error by steps ahead",
            "On the test rows, which no model has seen.",
            _buttons("horizon", {f"horizon-{m}": said for m, said in charts.MEASURES.items()})
            + holder("horizon-rmse", 400, "error by steps ahead, a line per model", "horizon"),
        ),
        section("Is it as sure as it says?", "", _calibration(shown)),
    ]
    return document(f"Tidecast: forecasts of {found['series']}", "\n".join(parts), figures)


def _models(found: dict[str, Any]) -> str:
    titles = words.column_titles(found["horizon"])
    kinds = [PLAIN, *[NUMBER] * (len(titles) - 1)]
    lines = []
    for name, model in words.sort_by_rmse(found):
        mark = 'class="median"' if name == CHAMPION else ""
        lines.append(row([escape(cell) for cell in words.format_model(name, model, found["horizon"])], kinds, mark))
    skipped = [f"<p>{escape(name)} was skipped: {escape(reason)}</p>" for name, reason in found["skipped"].items()]
    return table(titles, kinds, lines, 'class="wide"') + "".join(skipped)


def _buttons(place: str, choices: dict[str, str]) -> str:
    first = next(iter(choices))
    buttons = "".join(
        f'<button type="button" data-in="{place}" data-show="{chart}" aria-pressed="{str(chart == first).lower()}">'
        f"{escape(said)}</button>"
        for chart, said in choices.items()
    )
    return f'<div class="controls">{buttons}</div>'


def _calibration(shown: str) -> str:
    columns = [
        f"<h3>Each quantile of {escape(shown)}</h3>" + holder("calibration", 360, "observed against stated levels"),
        "<h3>Its intervals, by steps ahead</h3>" + holder("covered", 360, "coverage of the intervals by steps ahead"),
    ]
    return '<div class="columns">' + "".join(f"<div>{column}</div>" for column in columns) + "</div>"
