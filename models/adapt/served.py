"""What a new target is served, hour by hour: the gated choice among all candidates, and what no source would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.adapt.candidates import CandidateErrors, Target, best_of
from models.adapt.gate import TransferVerdict, better, rolling, verdict
from models.adapt.memory import corrections
from models.forecast.core.series import Floats

OWN = ("ridge", "gru", "last_value")
SOURCES = ("source_only", "shrunk", "adapted")
PRIOR = 0.5
"""Share of the source's daily habit that a target begins with, before its own rows speak."""


@dataclass(frozen=True, eq=False)
class ServedForecasts:
    """What was served after the history.

    Attributes:
        target_only: the name among `OWN` that was best on the gate's part.
        verdict: of the four-way gate at the end of the history; None without an adapted network.
        frozen: the name that serves if nothing is judged again.
        by_row: the name that serves each row served, judged again every hour; `+memory` says that it remembers
            yesterday's errors.
        errors: (rows, p) of what `by_row` served.
    """

    target_only: str
    verdict: TransferVerdict | None
    frozen: str
    by_row: list[str]
    errors: Floats

    @property
    def from_source(self) -> float:
        """Share of the rows served by a model that a source had a part in."""
        return float(np.mean([name.split("+")[0] in (*SOURCES, "taught") for name in self.by_row]))


def serve(
    target: Target, own: Mapping[str, CandidateErrors], theirs: Mapping[str, CandidateErrors], habit: Floats
) -> ServedForecasts:
    """Gate at the end of the history, then serve and judge again every hour.

    Args:
        target: with the rows to serve.
        own: the candidates of the target alone.
        theirs: those of a source whose shape is near enough; empty where it was not kept.
        habit: (4,) the source's daily rule; 0 where it was not kept or has none.
    """
    first = best_of(target, own)
    judged = {name: target.loss(one.judged) for name, one in {**own, **theirs}.items()}
    gate = ~np.isnan(judged[first])
    sure = [name for name in theirs if better(judged[name][gate], judged[first][gate], len(theirs))]
    ruling = four_way(judged, first, gate) if "adapted" in theirs else None
    if ruling is not None and not ruling.accepted and "adapted" in sure:
        sure.remove("adapted")
    frozen = min(sure, key=lambda name: float(judged[name][gate].mean()), default=first)

    plain = {**own, **theirs}
    nothing = np.zeros_like(habit)
    errors = {name: one.errors for name, one in plain.items()}
    for name, one in plain.items():
        errors[f"{name}+memory"] = one.errors - corrections(one.errors, target.day, nothing)
    if theirs and habit.any():
        errors["taught+memory"] = plain[first].errors - corrections(plain[first].errors, target.day, PRIOR * habit)
    held = {**{name: one.judged for name, one in plain.items()}, "taught": plain[first].judged}
    losses = {name: target.loss(_evidence(target, held[name.split("+")[0]], error)) for name, error in errors.items()}
    begin = target.history - 1
    by_row = rolling(losses, f"{frozen}+memory", begin, target.horizon)
    rows = np.array([errors[name][begin + i] for i, name in enumerate(by_row)])
    return ServedForecasts(first, ruling, frozen, by_row, rows)


def _evidence(target: Target, judged: Floats, errors: Floats) -> Floats:
    """Errors by which a candidate is judged while it serves: held-back ones in the history, then those of serving.

    A memory has no fair errors in the history; there it counts as the model it corrects.
    """
    return np.concatenate([judged[: target.history - 1], errors[target.history - 1 :]])


def four_way(judged: Mapping[str, Floats], first: str, gate: NDArray[np.bool_]) -> TransferVerdict:
    """The gate of `verdict` on (T,) squared losses of every candidate; `first` is the best of the target's own."""
    adapted, source, own, last = (
        float(np.sqrt(judged[name][gate].mean())) for name in ("adapted", "source_only", first, "last_value")
    )
    return verdict(adapted, source, own, last)
