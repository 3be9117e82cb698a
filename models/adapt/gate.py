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
        errors: every candidate's RMSE on the gate rows, by those names.
    """

    served: str
    accepted: bool
    transfer: float
    errors: dict[str, float]


def verdict(adapted: float, source_only: float, target_only: float, last_value: float) -> TransferVerdict:
    """Accept the adapted model if it beats target only (NT < 0), source only and last value.

    Otherwise the best of these three serves.

    Args:
        adapted: RMSE on the gate rows, in the same unit as the others; one that is not finite never wins.
        source_only: RMSE of the source's model as it is; if NaN, the adapted model is not accepted.
        target_only: RMSE of the best model of the target's own rows; likewise.
        last_value: RMSE of repeating the last value.

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
