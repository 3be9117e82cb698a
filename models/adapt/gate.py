"""Gate against negative transfer: an adapted network must beat doing without on held-back rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.forecast.core.series import SeriesError


@dataclass(frozen=True)
class TransferVerdict:
    """Outcome of the four-way gate against negative transfer.

    Attributes:
        served: which serves: "adapted", "source_only", "target_only" or "last_value".
        accepted: whether that is the adapted one.
        transfer: negative transfer NT = (E_adapted − E_target_only)/E_target_only; below 0 adaptation helped; infinite
            where E_target_only is not above 0.
        errors: every candidate's RMSE on the gate's rows, by those names.
    """

    served: str
    accepted: bool
    transfer: float
    errors: dict[str, float]


def decide_transfer(adapted: float, source_only: float, target_only: float, last_value: float) -> TransferVerdict:
    """Decide whether an adapted model serves: its error must be below those of the three models without transfer.

    Otherwise the best of these three serves. An error of NaN beats none and is beaten by none: the adapted model is
    accepted only where all four are known and `target_only` is above 0.

    Args:
        adapted: RMSE on the held-back (gate's) rows, in the same unit as the others.
        source_only: RMSE of the source's model as it is.
        target_only: RMSE of the best model of the target's own rows.
        last_value: RMSE of repeating the last value.

    Returns:
        The name that serves, whether it is "adapted", (adapted − target_only) ÷ target_only, and the errors by name.

    Raises:
        SeriesError: none of the three models without transfer has a finite error.
    """
    others = {"source_only": source_only, "target_only": target_only, "last_value": last_value}
    errors = {"adapted": adapted, **others}
    if not np.isfinite(list(others.values())).any():
        raise SeriesError(f"no candidate without transfer has a finite error: {errors}. Look at the gate rows.")
    transfer = (adapted - target_only) / target_only if target_only > 0 else float("inf")
    accepted = bool(transfer < 0 and adapted < np.min(list(others.values())))
    finite = {name: error for name, error in others.items() if np.isfinite(error)}
    served = "adapted" if accepted else min(finite, key=finite.__getitem__)
    return TransferVerdict(served, accepted, float(transfer), errors)
