"""What may serve: an adapted model has to win against doing without, first on held-back rows, then while it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.forecast.core.bootstrap import at_most
from models.forecast.core.series import Floats, SeriesError

BLOCK = 12
"""Rows that are averaged before they are compared: neighbouring errors are no independent witnesses."""
RECENT = 576
"""Rows the rolling gate looks back over at most."""


@dataclass(frozen=True)
class TransferVerdict:
    """The four-way gate against negative transfer.

    Attributes:
        served: the name of the model that serves.
        accepted: whether that is the adapted one.
        transfer: NT = (E_adapted − E_target_only)/E_target_only; negative: adaptation helped.
        errors: every candidate's RMSE on the gate rows.
    """

    served: str
    accepted: bool
    transfer: float
    errors: dict[str, float]


def verdict(adapted: float, source_only: float, target_only: float, last_value: float) -> TransferVerdict:
    """Accept the adapted model if NT < 0 and it beats source only and last value; else the best of the others serves.

    An error that is not finite never wins.

    Args:
        adapted: RMSE on the gate rows, as the others.
        source_only: the source's model as it is.
        target_only: the model of the target's own rows.
        last_value: repeating the last value.

    Raises:
        SeriesError: none of them is finite.
    """
    errors = {"adapted": adapted, "source_only": source_only, "target_only": target_only, "last_value": last_value}
    if not np.isfinite(list(errors.values())).any():
        raise SeriesError(f"no candidate has a finite error: {errors}. Look at the gate rows.")
    transfer = (adapted - target_only) / target_only if target_only > 0 else float("inf")
    accepted = bool(transfer < 0 and adapted < min(source_only, last_value))
    others = {name: error if np.isfinite(error) else np.inf for name, error in errors.items() if name != "adapted"}
    served = "adapted" if accepted else min(others, key=others.__getitem__)
    return TransferVerdict(served, accepted, float(transfer), errors)


def better(candidate: Floats, incumbent: Floats, rivals: int = 1) -> bool:
    """Whether (N,) losses are surely lower than the incumbent's on the same rows (`bootstrap.at_most`).

    Under four blocks nothing is certain, and the incumbent stays.
    """
    if len(candidate) < 4 * BLOCK or not np.isfinite(candidate + incumbent).all():
        return False
    return at_most(candidate, incumbent, rivals) < 1


def rolling(losses: Mapping[str, Floats], incumbent: str, begin: int, lag: int, every: int = BLOCK) -> list[str]:
    """Who serves each row from `begin` on, judged again every so many rows by losses known by then.

    Whoever is best of those that are surely better than the incumbent serves; where none is, the incumbent.

    Args:
        losses: (T,) per candidate, on the same rows; NaN where a candidate made no forecast.
        incumbent: serves unless another is surely better; it is in `losses`.
        begin: the first row served; rows before it are evidence only.
        lag: how many rows pass until a row's loss is known.
        every: rows between two judgements.

    Returns:
        A name per row from `begin` on.
    """
    steps = len(losses[incumbent])
    served: list[str] = []
    for at in range(begin, steps, every):
        known = slice(max(0, at - lag + 1 - RECENT), max(0, at - lag + 1))
        past = {name: loss[known] for name, loss in losses.items()}
        both = np.isfinite(np.stack(list(past.values()))).all(axis=0)
        past = {name: loss[both] for name, loss in past.items()}
        sure = [
            name for name, loss in past.items() if name != incumbent and better(loss, past[incumbent], len(past) - 1)
        ]
        best = min(sure, key=lambda name: float(past[name].mean()), default=incumbent)
        served += [best] * min(every, steps - at)
    return served
