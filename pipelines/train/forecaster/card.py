"""A registered forecaster's model card: what it is, what it learned from, what it is worth, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from models.forecast.core.forecaster import Forecaster
from pipelines.lake.load import LakeSeries

_COLUMNS = {
    "pinball": "pinball",
    "rmse_h1": "RMSE, 1 step",
    "rmse": "RMSE, all steps",
    "coverage_0.9": "under 0.9 quantile",
}


def model_card(
    job: str, forecaster: Forecaster, source: LakeSeries, scores: Mapping[str, Mapping[str, float]], note: str
) -> str:
    """Write the model card of a forecaster: returns Markdown.

    Args:
        job: whose load it forecasts.
        forecaster: the one described; its kind, steps and quantile levels are named.
        source: the data it was trained on; named by period (UTC), steps, Delta version and digest.
        scores: by forecaster, as `Backtest.scores` returns them, on the same held-out steps; a line of the table each,
            with `pinball`, `rmse_h1` (one step ahead), `rmse` (all steps ahead), all records/s, and `coverage_0.9`
            (share 0..1 of outcomes at or under the 0.9 quantile); a missing one is left empty. Without any: no table.
        note: a paragraph of Markdown, as it is.
    """
    data = source.lineage()
    levels = ", ".join(f"{level:g}" for level in forecaster.levels)
    lines = [
        f"# {forecaster.kind} for {job}",
        f"Forecasts the arrival rate (records/s) of the next {forecaster.horizon} steps of {forecaster.step_s:g} s, "
        f"at the quantile levels {levels}.",
        f"Data: {data['data.steps']} steps ({data['data.missing']} missing), {data['data.from']} to {data['data.to']} "
        f"UTC, Delta version {data['data.delta_version']}, digest {data['data.digest']}.",
        note,
    ]
    if scores:
        table = [f"| held-out steps | {' | '.join(_COLUMNS.values())} |", "|---" * (len(_COLUMNS) + 1) + "|"]
        for name, figures in scores.items():
            cells = [f"{figures[key]:.3g}" if key in figures else "" for key in _COLUMNS]
            table.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("\n".join(table))
    lines.append(
        "Limits: it knows the load's own past only, no holidays and no plans. Until the history is as long as its lags "
        "the seasonal naive forecast stands in, and the forecast says so."
    )
    return "\n\n".join(lines)
