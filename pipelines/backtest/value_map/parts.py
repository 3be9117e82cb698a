"""Lead times of a value map that an earlier run has finished: read from its figure instead of replayed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from configs.errors import SettingsError
from pipelines.figures.form import read_figure

SAME = ("traces", "violations", "test_days", "seeds", "knobs", "policies")
NUMBERS = ("hours", "ratio", "captured")


def read_parts(file: Path, wanted: dict[str, Any]) -> dict[float, dict[str, Any]]:
    """Return the finished parts of a value map by lead time in seconds, as `map_lead_time` made them.

    Args:
        file: of the figure; one that is not there holds nothing.
        wanted: what the map is computed of, by the names of `SAME`, as JSON values.

    Returns:
        Per lead time `cells` and `as_shipped` (lists of dicts); unknown numbers are NaN.

    Raises:
        SettingsError: the file holds a map of other loads, seeds, knobs or policies, or another command's figure.
        FigureError: it holds no figure.
        KeyError: a part of the map lacks a key.
        OSError: it cannot be read.
    """
    if not file.exists():
        return {}
    data = read_figure(file).data
    for name in SAME:
        if data.get(name) != wanted[name]:
            raise SettingsError(
                f"{file} holds a map with {name} {data.get(name)}, and {wanted[name]} are asked for. "
                "Name another --json file, or leave --resume out."
            )
    cells, defaults = map(_cell, data["cells"]), [one | {"ratio": _numbers(one["ratio"])} for one in data["as_shipped"]]
    parts: dict[float, dict[str, Any]] = {lead_s: {"cells": [], "as_shipped": []} for lead_s in data["leads_s"]}
    for key, rows in (("cells", cells), ("as_shipped", defaults)):
        for row in rows:
            parts[row["lead_s"]][key].append(row)
    return parts


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    gap = math.nan if cell["gap"] is None else cell["gap"]
    return cell | {"gap": gap} | {name: _numbers(cell[name]) for name in NUMBERS}


def _numbers(values: dict[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in values.items()}
