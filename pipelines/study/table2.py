"""The source paper's table of errors, run again: every model on every series, with its times."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from models.forecast import scores
from models.forecast.resample import NOISE_FLOOR
from pipelines.study.table2_cells import STEPS, Cell, cells
from pipelines.study.table2_models import PAPER, Fit, MissingExtra, models

FLOOR = "noise-free signal"
"""The row of a forecast that knows the load before noise was added."""


@dataclass(frozen=True)
class Row:
    """How one model did on one series at one step; NaN where it could not run.

    Attributes:
        source, step_s: of the cell.
        model: its name.
        smape_sum, smape_half: per cent, both forms.
        rmse, mae: records per step.
        skill: 1 − RMSE ÷ RMSE of the last value.
        train_s, infer_s: wall seconds; inference includes ARIMA's refits.
        cpu_s: processor seconds of both, of this process and its children.
        remark: what else is to be said.
    """

    source: str
    step_s: int
    model: str
    smape_sum: float = math.nan
    smape_half: float = math.nan
    rmse: float = math.nan
    mae: float = math.nan
    skill: float = math.nan
    train_s: float = math.nan
    infer_s: float = math.nan
    cpu_s: float = math.nan
    remark: str = ""


@dataclass(frozen=True)
class About:
    """What is known of a cell beside its rows."""

    source: str
    step_s: int
    training_rows: int
    test_rows: int
    mean: float
    deviation: float
    clipped: int
    independent_rmse: float


def run(
    steps: tuple[int, ...] = STEPS,
    seed: int = 1,
    file: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Fit and score every model on every cell; networks on one thread, which is quickest for them.

    The file, where one is given, is written after every row, so that a run that is broken off leaves what it found.
    """
    torch.set_num_threads(1)
    found: dict[str, Any] = {"seed": seed, "noise_floor": {"smape_sum": NOISE_FLOOR, "smape_half": 2 * NOISE_FLOOR}}
    found.update({"cells": [], "rows": [], "normalised_rmse": {}})
    for cell in cells(steps, seed):
        found["cells"].append(asdict(_about(cell)))
        for row in rows(cell, models(), seed):
            found["rows"].append(asdict(row))
            found["normalised_rmse"] = normalised(found["rows"])
            tell(f"{row.source}, {row.step_s} s, {row.model}: SMAPE {row.smape_half:.2f} %, {row.cpu_s:.1f} s CPU")
            if file is not None:
                file.write_text(json.dumps(found, indent=1))
    return found


def rows(cell: Cell, fits: dict[str, Fit], seed: int) -> Iterator[Row]:
    """One row per model, and one for the load without its noise where that is known."""
    last = scores.rmse(cell.test, cell.loads[cell.first - 1 : -1])
    for name, fit in fits.items():
        begin, busy = time.perf_counter(), _cpu_s()
        try:
            predict = fit(cell, seed)
        except MissingExtra as missing:
            yield Row(cell.source, cell.step_s, name, remark=str(missing))
            continue
        fitted = time.perf_counter()
        forecast, remark = predict()
        train_s, infer_s = fitted - begin, time.perf_counter() - fitted
        yield _scored(cell, name, forecast, last, (train_s, infer_s, _cpu_s() - busy), remark)
    if cell.clean is not None:
        yield _scored(cell, FLOOR, cell.clean[cell.first :], last, (0.0, 0.0, 0.0), "no forecast can know more")


def normalised(found: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """RMSE ÷ the mean MAE of the paper's models at the same step, averaged over sources; per model and step.

    The paper divides by "the average absolute errors for each sampling rate"; whose is not said.
    """
    ran = [row for row in found if math.isfinite(row["rmse"])]
    result: dict[str, dict[str, float]] = {}
    for step_s in sorted({row["step_s"] for row in ran}, reverse=True):
        here = [row for row in ran if row["step_s"] == step_s]
        divisors = [row["mae"] for row in here if row["model"] in PAPER]
        for model in dict.fromkeys(row["model"] for row in here):
            errors = [row["rmse"] for row in here if row["model"] == model]
            if divisors:
                share = sum(errors) / len(errors) / (sum(divisors) / len(divisors))
                result.setdefault(model, {})[str(step_s)] = share
    return result


def _scored(cell: Cell, name: str, forecast: Any, last: float, seconds: tuple[float, float, float], remark: str) -> Row:
    error = scores.rmse(cell.test, forecast)
    return Row(
        cell.source,
        cell.step_s,
        name,
        scores.smape_sum(cell.test, forecast),
        scores.smape_half(cell.test, forecast),
        error,
        scores.mae(cell.test, forecast),
        scores.skill(error, last),
        *seconds,
        remark,
    )


def _about(cell: Cell) -> About:
    loads = cell.loads
    return About(
        cell.source,
        cell.step_s,
        cell.first,
        len(cell.test),
        float(loads.mean()),
        float(loads.std()),
        cell.clipped,
        cell.independent_rmse,
    )


def _cpu_s() -> float:
    """Processor seconds of this process and the children it waited for; Prophet fits in a child."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
