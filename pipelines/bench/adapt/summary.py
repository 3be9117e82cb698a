"""What sources were worth, over all pairs of loads: errors as ratios to the best model without a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pipelines.bench.adapt.adaptation import SERVED_DAYS, Study, TransferCase
from pipelines.html.columns import of_rows
from pipelines.train.transfer.sources import TARGET

MODELS = {
    "served": "served: what the training chooses",
    "no_source": "the same without a source",
    TARGET: "adapted network, ungated",
    "source_only": "source as is",
    "ridge": "target only: ridge",
    "gru": "target only: GRU",
    "last_value": "last value",
}


def summarise_pairs(cases: Sequence[TransferCase], study: Study) -> dict[str, Any]:
    """Summarise cases as each model's RMSE ÷ that of `target_only`, the best model from the target's own history.

    The ratios of a (source, target) pair are averaged geometrically over its cuts before pairs are counted.

    Args:
        cases: from `adaptation.evaluate_pairs`, at least one.
        study: they were evaluated with.

    Returns:
        `horizon` (steps), `cuts` (most per target), `served_days`; `days`: by days of history, as text, e.g. "3", the
        numbers `pairs`, `cases` (pairs × cuts), `kept` (cases whose source had a shape near enough), `accepted`
        (adapted networks that beat the target's own models), `chosen` (cases in which one serves), and `models`: by key
        of MODELS or "target_only" the number `pairs` and, for "1" step ahead and "all", the ratios' `geometric_mean`,
        `worse_than_1.05` (share of pairs, 0..1) and `worst` (largest), and `beside_no_source`: the same of what serves
        ÷ what serves without a source; `models`: as rows of a table, a row per model of MODELS, whose columns are None
        where the model has no case.

    Raises:
        KeyError: there is no case, or one without the errors of `target_only`.
    """
    logs = pd.DataFrame(
        {"days": f"{case.days:g}", "target": case.target, "source": case.source, "model": model}
        | _log_ratios(case, model)
        for case in cases
        for model in case.errors
    )
    pairs = logs.groupby(["days", "target", "source", "model"]).mean()  # over a pair's moments
    by_days = {}
    for days, of_length in pairs.groupby("days"):
        of_days = [case for case in cases if f"{case.days:g}" == days]
        by_days[str(days)] = {
            "pairs": of_length.groupby(["target", "source"]).ngroups,
            "cases": len(of_days),
            "kept": sum(bool(case.transfer.forecasters) for case in of_days),
            "accepted": sum(verdict.accepted for case in of_days for verdict in case.transfer.verdicts.values()),
            "chosen": sum(case.chosen == TARGET for case in of_days),
            "models": {str(model): _summary(of_model) for model, of_model in of_length.groupby("model")},
            "beside_no_source": _summary(
                of_length.xs("served", level="model") - of_length.xs("no_source", level="model")
            ),
        }
    return {
        "horizon": study.task.horizon, "cuts": study.cuts, "served_days": SERVED_DAYS, "days": by_days,
        "models": [_line(model, words, by_days, study.task.horizon) for model, words in MODELS.items()],
    }  # fmt: skip


def format_summary(figures: Mapping[str, Any]) -> str:
    """Format the result of `summarise_pairs` as text: a row of ratios per model, a line of counts per length."""
    lines = of_rows(figures["models"])
    for days, data in figures["days"].items():
        lines.append(
            f"{days} day{'s' * (days != '1')} of history: {data['pairs']} pairs, {data['cases']} cases; "
            f"shape kept {data['kept']}, network accepted {data['accepted']}, chosen {data['chosen']}"
        )
    return "\n".join(lines)


def _log_ratios(case: TransferCase, model: str) -> dict[str, float]:
    """Logarithm of RMSE one step ahead and over all steps ahead, ÷ that of target only."""
    mine, own = (np.square(case.errors[name]) for name in (model, "target_only"))
    parts = {"1": slice(1), "all": slice(None)}
    return {name: float(np.log(np.nanmean(mine[:, h]) / np.nanmean(own[:, h]))) / 2 for name, h in parts.items()}


def _summary(logs: pd.DataFrame) -> dict[str, Any]:
    """Of a model's log ratios, a row per pair."""
    return {
        horizon: {
            "geometric_mean": float(np.exp(logs[horizon].mean())),
            "worse_than_1.05": float((logs[horizon] > np.log(1.05)).mean()),
            "worst": float(np.exp(logs[horizon].max())),
        }
        for horizon in ("1", "all")
    } | {"pairs": len(logs)}


def _line(model: str, words: str, by_days: Mapping[str, Any], horizon: int) -> dict[str, Any]:
    """A model's line of the table."""
    line: dict[str, Any] = {"RMSE ÷ target only": words}
    for days, data in by_days.items():
        known = data["models"].get(model)
        for part, ahead in (("1", "1 step"), ("all", f"1-{horizon}")):
            line[f"{days} d: {ahead}"] = round(known[part]["geometric_mean"], 3) if known else None
        line[f"{days} d: pairs, worst"] = f"{known['pairs']}, {known['all']['worst']:.3f}" if known else None
    return line
