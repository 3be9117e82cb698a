"""Reports on adapting a network from another job's load to a short history: metrics, tags and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from configs.bounds import DAY_S
from models.adapt.dtw import THRESHOLD
from models.adapt.target import LONG_DAYS
from models.forecast.core.series import Series
from models.forecast.selection.champion import ChampionChoice

if TYPE_CHECKING:
    from models.adapt.sources import TransferResult

TARGET = "adapted"
"""The name under which an adapted network competes."""
SOURCE, WHY = "adapt.source", "adapt.why"
"""Tags of a run and a version: the job whose load is the source, or "none"; and why."""
_CALLED = {
    TARGET: "adapted", "source_only": "unadapted", "target_only": "own load only", "last_value": "last value",
}  # fmt: skip


def transfer_metrics(result: TransferResult) -> dict[str, float]:
    """Return the figures of an adaptation (other jobs' networks tried on a short history) as MLflow metrics, by name.

    Returns:
        `adapt.<job>.shape` of every source that is long enough: its distance in shape from the load ÷ that of a
        shuffled one. Of those near enough also `adapt.<job>.<model>`: RMSE of `adapted`, `source_only`, `target_only`,
        `last_value` (1 = the last value's over the history), and `adapt.<job>.transfer`: (adapted - target_only) /
        target_only, below 0 it helped, infinite where target_only is 0. NaN are left out.
    """
    metrics = {f"adapt.{name}.shape": shape for name, shape in result.shapes.items()}
    for name, verdict in result.verdicts.items():
        metrics |= {f"adapt.{name}.{model}": error for model, error in verdict.errors.items()}
        metrics[f"adapt.{name}.transfer"] = verdict.transfer
    return {key: value for key, value in metrics.items() if value == value}


def describe_transfers(result: TransferResult) -> str:
    """Describe for the model card, for the nearest sources, whether the adapted network was accepted, and why.

    The parts are joined by "; ", refused sources first; of all but the nearest eight is said how many there are. RMSE
    are over all steps ahead, 1 being the last value's over the history.

    Raises:
        KeyError: a verdict's source has no distance in `result.shapes`, or lacks the error of one of the four models.
    """
    told, more = result.nearest()
    lines = [f"{name} kept out, {reason}" for name, reason in result.refused.items() if name in told]
    for name, verdict in result.verdicts.items():
        if name not in told:
            continue
        errors = ", ".join(f"{called} {verdict.errors[model]:.3g}" for model, called in _CALLED.items())
        ruled = "let in" if verdict.accepted else f"kept out, {_CALLED[verdict.served]} does better"
        lines.append(f"{name} (shape {result.shapes[name]:.2f}, kept under {THRESHOLD:g}): RMSE {errors}: {ruled}")
    return "; ".join(filter(None, [*lines, more])) or "there is no other load"


def why_no_transfer(history: Series, others: Mapping[str, Series]) -> str:
    """Say why no network is adapted from other loads: 14 days of its own or more, no other such load, or too few steps.

    `history` is all there is of the job's load; `others` are loads of other jobs with `LONG_DAYS` (14) days or more.
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
        why: in words, how the sources did.

    Returns:
        `adapt.source`: that job, or "none" where another candidate was chosen; `adapt.why`: the words, with the losses
        of both added (geometric mean of RMSE and pinball loss, records/s) where both were tried and another is chosen.
    """
    taken = chosen.name == TARGET
    if not taken and {TARGET, chosen.name} <= set(chosen.trials):
        mine, best = (chosen.trials[name].loss for name in (TARGET, chosen.name))
        why += f", but not chosen: loss {mine:.4g} {'is not surely under' if mine < best else 'against'} "
        why += f"{best:.4g} of {chosen.name}"
    return {SOURCE: source if taken else "none", WHY: why}
