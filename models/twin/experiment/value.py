"""The value map: what a forecast saves on a trace, at a lead time and an allowed violation, and over all of them.

Violation is the share of seconds over the latency target.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from models.twin.experiment.contenders import DEFAULTS, OURS, REACTIVE, TRUE_FUTURE, UNFORECAST
from models.twin.experiment.results import OPTIMUM, TraceResult

Cell = dict[str, Any]
LEADS_S = (10.0, 60.0, 180.0, 600.0, 1800.0)  # lead times of the map, seconds
VIOLATIONS = (0.01, 0.001)  # shares of the seconds over the latency target at which hours are compared
GAP = 0.05
"""Share of the cost that a true forecast saves, below which a cell has nothing to gain."""
LIKE_REACTIVE, TOO_DEAR = 1.02, 1.05
"""Ratios of hours to the best reactive policy: up to the first ours is no dearer, above the second it is too dear."""
OPTIMUM_LEAD_S, OPTIMUM_AT = 60.0, 0.01
"""Lead time at which the clairvoyant optimum is computed, and violation at which ours are compared with it."""


def compare_policies(one: TraceResult) -> list[Cell]:
    """Compare the policies on a trace at its lead time, one cell per allowed violation (0.01 and 0.001).

    Returns:
        Per cell "trace", "lead_s", "violation", "best_reactive" (name of the cheapest policy without a forecast, or
        None), "gap" (share of its hours that a true forecast saves), "hours" by policy, "ratio" (hours of ours over
        those of the best reactive) and "captured" (share of the gap that ours saves). NaN where a policy violates more,
        or, for "captured", where the gap is below 0.05.

    Raises:
        KeyError: `true_future` did not take part.
    """
    return [_cell(one, allowed) for allowed in VIOLATIONS]


def _cell(one: TraceResult, allowed: float) -> Cell:
    hours = {name: one.hours_at(name, allowed) for name in one.results}
    reactive = cheapest_policy(hours, REACTIVE)
    base, known = hours.get(reactive or "", math.nan), hours[TRUE_FUTURE]
    ours = {name: hours[name] for name in (*OURS, *UNFORECAST) if name in hours}
    gap = 1 - known / base
    return {
        "trace": one.scenario.name, "lead_s": one.scenario.setup.lead_s, "violation": allowed,
        "best_reactive": reactive, "gap": gap, "hours": hours,
        "ratio": {name: cost / base for name, cost in ours.items()},
        "captured": {name: (base - cost) / (base - known) if gap >= GAP else math.nan for name, cost in ours.items()},
    }  # fmt: skip


def compare_at_usual_settings(one: TraceResult) -> list[dict[str, Any]]:
    """Compare a trace's policies at their usual settings with ours at the same violation.

    Returns:
        Per policy of `DEFAULTS` that took part: "trace", "lead_s" (seconds), "policy", "knob" (the default of its tuned
        parameter), "executor_hours", "violation" (share of the seconds over the latency target) and "ratio": by policy
        of ours its hours over the default's, NaN where it violates more.
    """
    ours = [name for name in (*OURS, *UNFORECAST) if name in one.results]
    where, found = {"trace": one.scenario.name, "lead_s": one.scenario.setup.lead_s}, []
    for name in DEFAULTS:
        if name in one.results and (said := one.at_usual_setting(name, ours)):
            ratio = {rival: cost / said["executor_hours"] for rival, cost in said.pop("others").items()}
            found.append({**where, "policy": name, **said, "ratio": ratio})
    return found


def summarise(found: Sequence[Cell], shipped: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Summarise each of our policies over all cells; where it violates more than allowed, its cost counts as infinite.

    Args:
        found: of `compare_policies`.
        shipped: of `compare_at_usual_settings`.

    Returns:
        By policy: "cells" compared, "gap_cells" among them, "captured" (median share of the gap),
        "captured_at_least_half" (share of the gap cells), "all" and "nothing_to_gain" (how often no dearer than the
        best reactive, in all cells and in those without a gap), "against_defaults", "by_default" and "against_optimum"
        (median ratios of hours; NaN where there is nothing to compare) and "broken" (cells without a cost).

    Raises:
        KeyError: a policy is missing in some of the cells.
    """
    names = [name for name in (*OURS, *UNFORECAST) if any(name in cell["ratio"] for cell in found)]
    return {name: _summed(name, found, shipped) for name in names}


def compare_without_forecaster(found: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """Compare `mpc` with its variants without a forecaster, "mpc:none" and "mpc:last_value".

    Args:
        found: of `compare_policies`, cells of trace, lead time and violation; those with a gap of 0.05 or more count.

    Returns:
        By variant: "cells", "compared" (cells in which both keep the violation), "hours" (median ratio over those of
        the hours of `mpc` to the variant's, NaN without any), "cheaper" (cells with a ratio below 1) and
        "kept_by_forecast_alone" (cells in which only `mpc` keeps it).

    Raises:
        KeyError: a cell lacks "hours" or "gap".
    """
    said = {}
    for name in UNFORECAST:
        both = [
            (hours["mpc"], hours[name]) for cell in found
            if {"mpc", name} <= (hours := cell["hours"]).keys() and cell["gap"] >= GAP
        ]  # fmt: skip
        kept = [mine / other for mine, other in both if math.isfinite(mine) and math.isfinite(other)]
        alone = sum(math.isfinite(mine) and not math.isfinite(other) for mine, other in both)
        said[name] = {
            "cells": len(both), "hours": _median(kept), "cheaper": sum(ratio < 1 for ratio in kept),
            "compared": len(kept), "kept_by_forecast_alone": alone,
        }  # fmt: skip
    return said


def _summed(name: str, found: Sequence[Cell], shipped: Sequence[dict[str, Any]]) -> dict[str, Any]:
    compared = [cell for cell in found if cell["best_reactive"] is not None and math.isfinite(cell["gap"])]
    gained = [_or(cell["captured"][name], -math.inf) for cell in compared if cell["gap"] >= GAP]
    flat = [cell for cell in compared if cell["gap"] < GAP]
    at_optimum = (
        cell["hours"][name] / cell["hours"][OPTIMUM]
        for cell in found
        if OPTIMUM in cell["hours"] and cell["violation"] == OPTIMUM_AT and math.isfinite(cell["hours"][name])
    )
    defaults = [(one["policy"], ratio) for one in shipped if math.isfinite(ratio := one["ratio"][name])]
    return {
        "cells": len(compared), "gap_cells": len(gained), "captured": _median(gained),
        "captured_at_least_half": _share(part >= 0.5 for part in gained),
        "all": _dearness(name, compared), "nothing_to_gain": _dearness(name, flat),
        "against_defaults": _median(ratio for _, ratio in defaults),
        "by_default": {one: _median(ratio for policy, ratio in defaults if policy == one) for one in DEFAULTS},
        "against_optimum": _median(at_optimum),
        "broken": sum(not math.isfinite(cell["ratio"][name]) for cell in compared),
    }  # fmt: skip


def _dearness(name: str, compared: Sequence[Cell]) -> dict[str, Any]:
    """How often ours is no dearer than the best reactive policy, and where it is dearest."""
    ratios = [_or(cell["ratio"][name], math.inf) for cell in compared]
    at = max(range(len(ratios)), key=lambda i: ratios[i], default=None)
    worst = (
        None
        if at is None
        else {**{key: compared[at][key] for key in ("trace", "lead_s", "violation")}, "ratio": ratios[at]}
    )
    return {
        "cells": len(ratios), "like_reactive": _share(ratio <= LIKE_REACTIVE for ratio in ratios),
        "too_dear": sum(ratio > TOO_DEAR for ratio in ratios), "worst": worst,
    }  # fmt: skip


def cheapest_policy(hours: dict[str, float], names: Iterable[str]) -> str | None:
    """Return the name of the policy with the fewest hours; None where none of `names` has a finite cost."""
    known = [name for name in names if math.isfinite(hours.get(name, math.nan))]
    return min(known, key=lambda name: hours[name], default=None)


def _or(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


def _median(values: Iterable[float]) -> float:
    listed = list(values)
    return statistics.median(listed) if listed else math.nan


def _share(flags: Iterable[bool]) -> float:
    listed = list(flags)
    return statistics.fmean(listed) if listed else math.nan
