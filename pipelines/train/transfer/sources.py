"""What came of asking the loads of other jobs to help a short history: figures for MLflow, words for a person."""

from __future__ import annotations

from collections.abc import Mapping

from models.adapt.dtw import THRESHOLD
from models.adapt.sources import TransferResult
from models.adapt.target import LONG_DAYS
from models.forecast.core.forecaster import DAY_S
from models.forecast.core.series import Series
from models.forecast.selection.champion import ChampionChoice

TARGET = "adapted"
"""The name under which an adapted network competes."""
SOURCE, WHY = "adapt.source", "adapt.why"
"""Tags of a run and a version: the job whose load is the source, or "none"; and why."""
_CALLED = {
    TARGET: "adapted", "source_only": "unadapted", "target_only": "own load only", "last_value": "last value",
}  # fmt: skip


def figures(result: TransferResult) -> dict[str, float]:
    """`adapt.<job>.shape` of every source, and the four-way gate's errors and transfer of those near enough."""
    found = {f"adapt.{name}.shape": shape for name, shape in result.shapes.items()}
    for name, verdict in result.verdicts.items():
        found |= {f"adapt.{name}.{model}": error for model, error in verdict.errors.items()}
        found[f"adapt.{name}.transfer"] = verdict.transfer
    return {key: value for key, value in found.items() if value == value}


def explained(result: TransferResult) -> str:
    """Every source and whether it was let in; RMSE over all steps ahead, 1 being the last value's over the history."""
    lines = [f"{name} kept out, {reason}" for name, reason in result.refused.items()]
    for name, verdict in result.verdicts.items():
        errors = ", ".join(f"{called} {verdict.errors[model]:.3g}" for model, called in _CALLED.items())
        ruled = "let in" if verdict.accepted else f"kept out, {_CALLED[verdict.served]} does better"
        lines.append(f"{name} (shape {result.shapes[name]:.2f}, kept under {THRESHOLD:g}): RMSE {errors}: {ruled}")
    return "; ".join(lines) or "there is no other load"


def nobody(history: Series, others: Mapping[str, Series]) -> str:
    """Why no other load helps a job where no `TransferResult` says so; the history is all there is of its load."""
    days = len(history) * history.step_s / DAY_S
    if days >= LONG_DAYS:
        return f"nobody was asked: {days:.0f} days of its own are enough"
    if not others:
        return f"nobody was asked: no other job has {LONG_DAYS} days of load"
    return f"nobody was asked: {len(history)} steps are too few to compare candidates on"


def tags(chosen: ChampionChoice, source: str, why: str) -> dict[str, str]:
    """`SOURCE` and `WHY` of what was chosen in the end."""
    taken = chosen.name == TARGET
    if TARGET in chosen.trials and not taken:
        mine, best = (chosen.trials[name].loss for name in (TARGET, chosen.name))
        why += f", but not chosen: loss {mine:.4g} {'is not surely under' if mine < best else 'against'} "
        why += f"{best:.4g} of {chosen.name}"
    return {SOURCE: source if taken else "none", WHY: why}
