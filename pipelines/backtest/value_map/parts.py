"""Lead times of a value map that an earlier run has finished: read from its figure instead of replayed."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from models.twin.experiment.setup import Setup
from pipelines.backtest.load import NamedLoad
from pipelines.figures.resumed import read_resumed

SAME = ("traces", "violations", "test_days", "seeds", "knobs", "policies", "setup", "digests")
NUMBERS = ("hours", "ratio", "captured")


def describe_inputs(traces: Sequence[NamedLoad], setup: Setup, learned: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what the numbers of a map hang on beside names: `setup` without its lead time, and `digests`.

    Those are of each trace, for a file is known by its name alone, and of what was learned, by policy.
    """
    contract = setup.contract_of_job
    known = asdict(replace(setup, contract_of_job=None))
    del known["lead_s"]
    made = {name: hashlib.sha256(pickle.dumps(one)).hexdigest()[:16] for name, one in learned.items()}
    return {
        "setup": known | {"contract_of_job": contract and contract.model_dump(mode="json")},
        "digests": {"traces": {one.name: one.series.digest for one in traces}, "learned": made},
    }


def read_parts(file: Path, wanted: dict[str, Any]) -> dict[float, dict[str, Any]]:
    """Return the finished parts of a value map by lead time in seconds, as `map_lead_time` made them.

    Args:
        file: of the figure; one that is not there holds nothing.
        wanted: what the map is computed of, by the names of `SAME`, as JSON values.

    Returns:
        Per lead time `cells` and `as_shipped` (lists of dicts); unknown numbers are NaN.

    Raises:
        SettingsError: the file holds a map of other loads, policies or settings, or of unknown ones, as of an earlier
            release, or another command's figure.
        FigureError: it holds no figure.
        KeyError: a part of the map lacks a key.
        OSError: it cannot be read.
    """
    data = read_resumed(file, {name: wanted[name] for name in SAME})
    if not data:
        return {}
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
