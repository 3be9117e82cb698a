"""What the cells of `tidecast bench headroom` come to together, and the tables that the docs show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

BUDGETS = (0.001, 0.01)
"""Shares of the seconds that may be late."""
ABOVE = 1.10
"""Times the optimum above which `mpc` leaves something to gain."""
GOAL = 0.97
"""Times the executor-hours of `mpc` that count as a gain."""
KINDS = {
    "constant": "in hindsight, constant: ", "by_part": "in hindsight, for every part: ", "learned": "by observation: ",
}  # fmt: skip
"""By which the actions of a cell are chosen, and how a table says it."""

Cell = dict[str, Any]


def summarise_headroom(cells: Sequence[Cell]) -> dict[str, Any]:
    """Summarise cells; those in which `mpc` or the optimum keeps no budget are not judged.

    Returns:
        `judged`, `above` (cells with `mpc` above `ABOVE` times the optimum), and of these: `chosen`, by kind and name
        the `median` of the ratios to `mpc`, a budget that is not kept counting as infinite (None), the `worst` of those
        that are kept, and how many are `gaining`; `learned`, the same for the seeds together, with the cells `not_kept`
        by any; and the tables `rows` and `by_group`.
    """
    judged = [cell for cell in cells if cell["above"] is not None]
    open_cells = [cell for cell in judged if cell["above"] > ABOVE]
    names = {kind: list(judged[0][kind]) if judged else [] for kind in KINDS}
    chosen = {kind: {name: _spread(open_cells, kind, name) for name in names[kind]} for kind in KINDS}
    seeds = [one for name, one in chosen["learned"].items() if name.startswith("seed")]
    groups = sorted({(cell["lead_s"], cell["power"], cell["budget"]) for cell in judged})
    return {
        "judged": len(judged), "above": len(open_cells), "chosen": chosen,
        "learned": {
            "median": _finite(float(np.median([_or(one["median"]) for one in seeds]))) if seeds else None,
            "worst": max((one["worst"] for one in seeds if one["worst"] is not None), default=None),
            "not_kept": sum(any(cell["learned"][name] is None for name in cell["learned"] if name.startswith("seed"))
                            for cell in open_cells),
        },
        "rows": [
            {"the action is chosen": f"{said}{name}", "÷ `mpc`, median": _show(one["median"]),
             "worst": _show(one["worst"]), "cells ≤ 0.97 ×": one["gaining"]}
            for kind, said in KINDS.items()
            for name, one in chosen[kind].items()
        ],
        "by_group": [_group(group, judged) for group in groups],
    }  # fmt: skip


def _spread(cells: Sequence[Cell], kind: str, name: str) -> dict[str, Any]:
    ratios = [_or(cell[kind][name]) for cell in cells]
    kept = [ratio for ratio in ratios if math.isfinite(ratio)]
    median = _finite(float(np.median(ratios))) if ratios else None
    return {"median": median, "worst": max(kept, default=None), "gaining": sum(ratio <= GOAL for ratio in ratios)}


def _group(group: tuple[float, float, float], judged: Sequence[Cell]) -> dict[str, Any]:
    lead_s, power, budget = group
    mine = [cell for cell in judged if (cell["lead_s"], cell["power"], cell["budget"]) == group]
    above = [cell for cell in mine if cell["above"] > ABOVE]

    def median(kind: str, name: str) -> str | float | None:
        return _show(_spread(above, kind, name)["median"]) if above else None

    return {
        "lead time, s": f"{lead_s:g}", "capacity: executors to the power": f"{power:g}", "late": f"{budget:.1%}",
        "cells": len(mine), "`mpc` ÷ optimum, median": float(np.median([cell["above"] for cell in mine])),
        "above 1.10 ×": len(above), "in hindsight, constant ÷ `mpc`": median("constant", "all"),
        "for every 48 leads": median("by_part", "all, 48 leads"),
        "for every 12 leads": median("by_part", "all, 12 leads"), "by observation": median("learned", "seed 1"),
    }  # fmt: skip


def _or(ratio: float | None) -> float:
    return math.inf if ratio is None else ratio


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _show(value: float | None) -> float | str:
    return "not kept" if value is None else value
