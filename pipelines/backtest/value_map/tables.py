"""Tables of the value map for the documentation: what is captured by lead time, and what usual settings cost."""

from __future__ import annotations

import math
import statistics
from typing import Any

from models.twin.experiment.value import GAP


def by_lead_time(cells: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return one flat row per lead time: the median share of the gap that each policy captures.

    Args:
        cells: of `compute_value_map`, NaN and infinities as None; a policy without a captured share has captured
            nothing.
        names: of policies.

    Returns:
        Rows with "lead time, s" (ascending), "captured by NAME" per policy (None where the median is of cells in
        which it kept no promise) and "cells" (how many have a gap of 5 % or more).
    """
    gapped = [cell for cell in cells if cell["gap"] is not None and cell["gap"] >= GAP]
    return [
        {
            "lead time, s": lead,
            **{f"captured by `{name}`": _median([cell["captured"].get(name) for cell in at_lead]) for name in names},
            "cells": len(at_lead),
        }
        for lead in sorted({cell["lead_s"] for cell in gapped})
        if (at_lead := [cell for cell in gapped if cell["lead_s"] == lead])
    ]


def by_default(summary: dict[str, dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return one flat row per usual setting: executor-hours of each policy ÷ the default's, at its own violation.

    Args:
        summary: of `compute_value_map`, by policy.
        names: of policies.

    Raises:
        KeyError: a policy is not in the summary.
    """
    defaults = summary[names[0]]["by_default"] if names else ()
    return [
        {"default": one, **{f"`{name}` ÷ it": summary[name]["by_default"][one] for name in names}} for one in defaults
    ]


def _median(shares: list[float | None]) -> float | None:
    found = statistics.median(-math.inf if share is None else share for share in shares)
    return found if math.isfinite(found) else None
