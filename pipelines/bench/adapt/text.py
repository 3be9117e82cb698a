"""The adaptation study as lines of text."""

from __future__ import annotations

from typing import Any

MODELS = {
    "served": "served, gated",
    "no_source": "the same without a source",
    "frozen": "gated once, at the end of the history",
    "adapted": "adapted network, ungated",
    "shrunk": "ridge drawn to the source's, ungated",
    "source_only": "source as is",
    "ridge": "target only: ridge",
    "gru": "target only: GRU",
    "last_value": "last value",
}


def table(found: dict[str, Any]) -> str:
    """Per length of history: RMSE ÷ target only, geometric mean over pairs, one step ahead and over all."""
    horizon = found["horizon"]
    lines = []
    for days, data in found["days"].items():
        lines += [
            f"{days} day{'s' * (days != '1')} of history: {data['pairs']} pairs, {data['cases']} cases; "
            f"shape kept {data['kept']}, network accepted {data['accepted']}, begun with a source "
            f"{data['begun_with_source']}, rows served with one {data['rows_from_source']:.0%}",
            f"  {'RMSE ÷ target only':38} {'1 step':>8} {'> 1.05':>7} {'worst':>7}   "
            f"{f'1-{horizon} steps':>10} {'> 1.05':>7} {'worst':>7} {'pairs':>6}",
        ]
        for model, words in MODELS.items():
            if model in data["models"]:
                lines.append(f"  {words:38} {_cells(data['models'][model])}")
        best = data["hindsight"]
        lines.append(f"  {'served ÷ the best own model afterwards':38} {best['1']:8.3f} {best['all']:28.3f}")
    return "\n".join(lines)


def pair_lines(found: dict[str, Any], days: str) -> str:
    """Every pair at one length of history, by target."""
    lines = [f"{'target':14}{'source':14}{'d/d_null':>9}{'served 1':>10}{'served all':>12}{'from source':>13}"]
    for row in found["days"][days]["table"]:
        ratio = row["ratios"]["served"]
        lines.append(
            f"{row['target']:14}{row['source']:14}{row['likeness']:9.2f}{ratio['1']:10.3f}{ratio['all']:12.3f}"
            f"{row['rows_from_source']:13.0%}"
        )
    return "\n".join(lines)


def _cells(model: dict[str, Any]) -> str:
    one, whole = model["1"], model["all"]
    return (
        f"{one['geometric_mean']:8.3f} {one['worse_than_1.05']:7.0%} {one['worst']:7.3f}   "
        f"{whole['geometric_mean']:10.3f} {whole['worse_than_1.05']:7.0%} {whole['worst']:7.3f} {model['pairs']:6d}"
    )
