"""A registered forecaster's model card: what it is, what it learned from, what it is worth, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from models.forecast.core.forecaster import Forecaster
from pipelines.lake.load import LakeSeries
from pipelines.train.card import describe_data, describe_making

_COLUMNS = {
    "pinball": "pinball",
    "rmse_h1": "RMSE, 1 step",
    "rmse": "RMSE, all steps",
    "coverage_0.9": "under 0.9 quantile",
}


def model_card(
    job: str, forecaster: Forecaster, source: LakeSeries, scores: Mapping[str, Mapping[str, float]], note: str,
    run: str, commit: str | None,
) -> str:  # fmt: skip
    """Write the model card of a forecaster: returns Markdown, of which MLflow keeps the first 5,000 characters.

    Args:
        job: whose load it forecasts.
        forecaster: the one described; its kind, steps and quantile levels are named.
        source: the data it was trained on; named by period (UTC), steps, Delta version and digest.
        scores: by forecaster, as `Backtest.scores` returns them, on the same held-out steps; a line of the table each,
            with `pinball`, `rmse_h1` (one step ahead), `rmse` (all steps ahead), all records/s, and `coverage_0.9`
            (share 0..1 of outcomes at or under the 0.9 quantile); a missing one is left empty. Without any: no table.
        note: a paragraph of Markdown, as it is.
        run: MLflow's id of the run that made it.
        commit: of the code that made it; None: nobody knows.
    """
    levels = ", ".join(f"{level:g}" for level in forecaster.levels)
    lines = [
        f"# {forecaster.kind} for {job}",
        f"Forecasts the arrival rate (records/s) of the next {forecaster.horizon} steps of {forecaster.step_s:g} s, "
        f"at the quantile levels {levels}.",
        describe_data(source),
        describe_making(
            run, commit, "retrain_forecaster", {"job": job},
            f"the table `metrics` as of Delta version {source.delta_version}",
            f"another job, other steps than of {forecaster.step_s:g} s, or a promise of its own. It knows the load's "
            "own past only, no holidays and no plans.",
        ),
    ]  # fmt: skip
    if scores:
        lines += [_table(scores), _calibration(scores)]
    lines += [
        note,
        "Until the history is as long as its lags the seasonal naive forecast stands in, and the forecast says so.",
    ]
    return "\n\n".join(filter(None, lines))


def _table(scores: Mapping[str, Mapping[str, float]]) -> str:
    rows = [f"| held-out steps | {' | '.join(_COLUMNS.values())} |", "|---" * (len(_COLUMNS) + 1) + "|"]
    for name, figures in scores.items():
        cells = [f"{figures[key]:.3g}" if key in figures else "" for key in _COLUMNS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _calibration(scores: Mapping[str, Mapping[str, float]]) -> str:
    """At which share of the held-out outcomes each quantile of the described forecaster, the first one, came to lie."""
    (mine, *_) = scores.values()
    shares = {k.removeprefix("coverage_"): v for k, v in mine.items() if k.startswith("coverage_") and v == v}
    found = ", ".join(f"{100 * share:.3g} % under {level}" for level, share in shares.items())
    return f"Calibration: of the held-out outcomes lay, at or under each quantile, {found}." if found else ""
