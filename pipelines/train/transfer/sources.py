"""Reports on adapting a network from another job's load to a short history: metrics, tags and text."""

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


def transfer_metrics(result: TransferResult) -> dict[str, float]:
    """Return the figures of an adaptation for MLflow.

    Returns:
        `adapt.<job>.shape` of every source that is long enough (distance in shape, over that of no shape at all); of
        those near enough also `adapt.<job>.<model>` (RMSE of each of the four models compared, 1 being the last value's
        over the history) and `adapt.<job>.transfer` ((adapted - own)/own; below 0 it helped). NaN are left out.
    """
    metrics = {f"adapt.{name}.shape": shape for name, shape in result.shapes.items()}
    for name, verdict in result.verdicts.items():
        metrics |= {f"adapt.{name}.{model}": error for model, error in verdict.errors.items()}
        metrics[f"adapt.{name}.transfer"] = verdict.transfer
    return {key: value for key, value in metrics.items() if value == value}


def describe_transfers(result: TransferResult) -> str:
    """Say of every source whether its adapted network was accepted, and why; for model cards.

    Returns:
        A text with a part per source, refused ones first; errors are RMSE over all steps ahead, 1 being the last
        value's over the history.
    """
    lines = [f"{name} kept out, {reason}" for name, reason in result.refused.items()]
    for name, verdict in result.verdicts.items():
        errors = ", ".join(f"{called} {verdict.errors[model]:.3g}" for model, called in _CALLED.items())
        ruled = "let in" if verdict.accepted else f"kept out, {_CALLED[verdict.served]} does better"
        lines.append(f"{name} (shape {result.shapes[name]:.2f}, kept under {THRESHOLD:g}): RMSE {errors}: {ruled}")
    return "; ".join(lines) or "there is no other load"


def why_no_transfer(history: Series, others: Mapping[str, Series]) -> str:
    """Say why no network is adapted from other loads: the own load is long, there is no long one, or too few steps.

    Args:
        history: all there is of the job's load.
        others: long loads of other jobs, by name.
    """
    days = len(history) * history.step_s / DAY_S
    if days >= LONG_DAYS:
        return f"nobody was asked: {days:.0f} days of its own are enough"
    if not others:
        return f"nobody was asked: no other job has {LONG_DAYS} days of load"
    return f"nobody was asked: {len(history)} steps are too few to compare candidates on"


def transfer_tags(chosen: ChampionChoice, source: str, why: str) -> dict[str, str]:
    """Return the tags of a run that say from whose load the chosen forecaster was adapted.

    Args:
        chosen: the choice among the candidates.
        source: the job whose network was adapted.
        why: what came of asking other loads, in words.

    Returns:
        `SOURCE`: that job, or "none" where another candidate was chosen; `WHY`: the words, with the losses of both
        added where the adapted one was tried and not chosen.
    """
    taken = chosen.name == TARGET
    if TARGET in chosen.trials and not taken:
        mine, best = (chosen.trials[name].loss for name in (TARGET, chosen.name))
        why += f", but not chosen: loss {mine:.4g} {'is not surely under' if mine < best else 'against'} "
        why += f"{best:.4g} of {chosen.name}"
    return {SOURCE: source if taken else "none", WHY: why}
