"""What may compete: an adapted network has to win against doing without on rows that were held back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.forecast.core.series import SeriesError


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
