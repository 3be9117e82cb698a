"""The source paper's table of errors, run again: every model on every series, with its times."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from models.forecast.core import scores
from models.forecast.core.resample import NOISE_FLOOR
from models.forecast.core.series import SeriesError
from pipelines.bench.table2.cells import STEPS, Cell, cells
from pipelines.bench.table2.models import PAPER, Fit, MissingExtra, models
from pipelines.figures.form import read
from pipelines.figures.written import write

FLOOR = "noise-free signal"
"""The row of a forecast that knows the load before noise was added."""


@dataclass(frozen=True)
class TableRow:
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
    resume: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Fit and score every model on every cell; networks on one thread, which is quickest for them.

    The file, where one is given, is written after every row, so that a run that is broken off leaves what it found; a
    run that resumes takes the rows of the same seed from it and computes the others.
    """
    torch.set_num_threads(1)
    known = _kept(file, seed) if resume and file is not None else {}
    every = list(cells(steps, seed))
    for cell in every:
        fits = {name: fit for name, fit in models().items() if (cell.source, cell.step_s, name) not in known}
        for row in rows(cell, fits, seed):
            known[row.source, row.step_s, row.model] = _record(row)
            tell(f"{row.source}, {row.step_s} s, {row.model}: SMAPE {row.smape_half:.2f} %, {row.cpu_s:.1f} s CPU")
            if file is not None:
                write(file, _found(seed, every, known))
    return _found(seed, every, known)


def rows(cell: Cell, fits: dict[str, Fit], seed: int) -> Iterator[TableRow]:
    """One row per model, and one for the load without its noise where that is known."""
    last = scores.rmse(cell.test, cell.loads[cell.first - 1 : -1])
    for name, fit in fits.items():
        begin, busy = time.perf_counter(), _cpu_s()
        try:
            predict = fit(cell, seed)
        except MissingExtra as missing:
            yield TableRow(cell.source, cell.step_s, name, remark=str(missing))
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
    ran = [row for row in found if row["rmse"] is not None]
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


def _scored(
    cell: Cell, name: str, forecast: Any, last: float, seconds: tuple[float, float, float], remark: str
) -> TableRow:
    error = scores.rmse(cell.test, forecast)
    return TableRow(
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


def _found(seed: int, every: list[Cell], known: dict[tuple[str, int, str], dict[str, Any]]) -> dict[str, Any]:
    """All figures as JSON values, rows in the order of the table."""
    keys = [(cell.source, cell.step_s, name) for cell in every for name in (*models(), FLOOR)]
    listed = [known[key] for key in keys if key in known]
    return {
        "seed": seed,
        "noise_floor": {"smape_sum": NOISE_FLOOR, "smape_half": 2 * NOISE_FLOOR},
        "cells": [_record(_about(cell)) for cell in every],
        "rows": listed,
        "normalised_rmse": normalised(listed),
    }


def _kept(file: Path, seed: int) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Rows of a run that was broken off, by source, step and model; what could not run then is tried again."""
    before: dict[str, Any] = read(file).data if file.exists() else {"seed": seed, "rows": []}
    if before["seed"] != seed:
        raise SeriesError(f"{file} holds a run with seed {before['seed']}, not {seed}. Name another file.")
    return {(row["source"], row["step_s"], row["model"]): row for row in before["rows"] if row["rmse"] is not None}


def _record(values: TableRow | About) -> dict[str, Any]:
    """As JSON values, NaN as null."""
    plain = asdict(values)
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in plain.items()}


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
