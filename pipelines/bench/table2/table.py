"""The source paper's table of errors, run again: every model on every series, with its times."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from models.forecast.core import scores
from models.forecast.core.series import Floats, SeriesError
from pipelines.bench.table2.loads import NOISE_FLOOR, STEPS, Cell, simulate_cells
from pipelines.bench.table2.models import PAPER, Fit, MissingExtra, list_models
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure

Row = dict[str, Any]
SEED = 1
"""Of noise, weights and the order of training rows."""
FLOOR = "noise-free signal"
"""The row of a forecast that knows the load before noise was added."""


def compute_table(
    steps: tuple[int, ...] = STEPS,
    seed: int = SEED,
    file: Path | None = None,
    resume: bool = False,
    report_progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Fit and score every model on every series of the source paper's table. Limits torch to one thread for good.

    Args:
        steps: seconds per step, see `simulate_cells`.
        seed: of noise and networks.
        file: the figure is written there after every row, over what it held; None writes nothing.
        resume: take the rows that the file holds from an earlier run of the same seed, and compute only the others.
        report_progress: called with a line of text per row.

    Returns:
        `seed`, `noise_floor` (SMAPE in per cent of a forecast that knows the load without noise: `smape_sum`,
        `smape_half`), `cells` (per series `source`, `step_s`, `training_rows`, `test_rows`; `mean` and `deviation` in
        records per step; `clipped`, values cut at 0; `independent_rmse`, least RMSE if events are independent, or
        None), `rows` (see `score_models`) and `normalised_rmse` (see `normalise_rmse`).

    Raises:
        SeriesError: the file to resume from has another seed; a step is no multiple of 60 from 60 to 300.
        FigureError, KeyError, TypeError: it is no file of figures, or not of this command.
        OSError: the file cannot be read or written.
    """
    torch.set_num_threads(1)
    computed = _kept(file, seed) if resume and file is not None else {}
    cells = list(simulate_cells(steps, seed))
    for cell in cells:
        fits = {name: fit for name, fit in list_models().items() if (cell.source, cell.step_s, name) not in computed}
        for row in score_models(cell, fits, seed):
            computed[_key(row)] = row
            outcome = (
                row["remark"] if row["rmse"] is None else f"SMAPE {row['smape_half']:.2f} %, {row['cpu_s']:.1f} s CPU"
            )
            report_progress(f"{cell.source}, {cell.step_s} s, {row['model']}: {outcome}")
            write_figure(file, _found(seed, cells, computed))
    return _found(seed, cells, computed)


def score_models(cell: Cell, fits: dict[str, Fit], seed: int) -> Iterator[Row]:
    """Fit and score models on one series, one after the other, each as its row is asked for.

    Args:
        cell: the series.
        fits: models by name, as from `models.list_models`.
        seed: of the networks.

    Yields:
        Per model, and for the load without noise where that is known: `source`, `step_s`, `model`; `smape_sum` and
        `smape_half` in per cent; `rmse` and `mae` in records per step; `skill`, 1 − RMSE ÷ that of the last value; wall
        seconds `train_s` and `infer_s` (ARIMA's refits included); `cpu_s` of both, child processes included; `remark`
        (text). Scores and times are None where a model's library is not installed, and the remark says so; what a
        library raises comes through.
    """
    for name, fit in fits.items():
        begin, busy = time.perf_counter(), _cpu_s()
        try:
            predict = fit(cell, seed)
        except MissingExtra as missing:
            yield _row(cell, name, None, (None, None, None), str(missing))
            continue
        fitted = time.perf_counter()
        forecast, remark = predict()
        train_s, infer_s = fitted - begin, time.perf_counter() - fitted
        yield _row(cell, name, forecast, (train_s, infer_s, _cpu_s() - busy), remark)
    if cell.clean is not None:
        yield _row(cell, FLOOR, cell.clean[cell.first :], (0.0, 0.0, 0.0), "no forecast can know more")


def normalise_rmse(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Divide each model's RMSE, averaged over sources, by the mean MAE of the paper's models at the same step.

    The paper divides by "the average absolute errors for each sampling rate" and does not say of which models.

    Args:
        rows: as from `score_models`.

    Returns:
        By model, then by seconds per step as text, e.g. "300", longest step first; without steps at which none of the
        paper's models ran.
    """
    ran = [row for row in rows if row["rmse"] is not None]
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


def _row(cell: Cell, name: str, forecast: Floats | None, seconds: tuple[float | None, ...], remark: str) -> Row:
    scored: Row = dict.fromkeys(("smape_sum", "smape_half", "rmse", "mae", "skill"))
    if forecast is not None:
        scored = {score: getattr(scores, score)(cell.test, forecast) for score in scored if score != "skill"}
        scored["skill"] = scores.skill(scored["rmse"], scores.rmse(cell.test, cell.loads[cell.first - 1 : -1]))
    spent = dict(zip(("train_s", "infer_s", "cpu_s"), seconds, strict=True))
    return {"source": cell.source, "step_s": cell.step_s, "model": name, **scored, **spent, "remark": remark}


def _key(row: Row) -> tuple[str, int, str]:
    return row["source"], row["step_s"], row["model"]


def _found(seed: int, every: list[Cell], known: dict[tuple[str, int, str], Row]) -> dict[str, Any]:
    """All figures as JSON values, rows in the order of the table."""
    keys = [(cell.source, cell.step_s, name) for cell in every for name in (*list_models(), FLOOR)]
    listed = [known[key] for key in keys if key in known]
    return {
        "seed": seed,
        "noise_floor": {"smape_sum": NOISE_FLOOR, "smape_half": 2 * NOISE_FLOOR},
        "cells": [_about(cell) for cell in every],
        "rows": listed,
        "normalised_rmse": normalise_rmse(listed),
    }


def _kept(file: Path, seed: int) -> dict[tuple[str, int, str], Row]:
    """Rows of a run that was broken off, by source, step and model; what could not run then is tried again."""
    before: dict[str, Any] = read_figure(file).data if file.exists() else {"seed": seed, "rows": []}
    if before["seed"] != seed:
        raise SeriesError(f"{file} holds a run with seed {before['seed']}, not {seed}. Name another file.")
    return {_key(row): row for row in before["rows"] if row["rmse"] is not None}


def _about(cell: Cell) -> Row:
    least = cell.independent_rmse
    return {
        "source": cell.source,
        "step_s": cell.step_s,
        "training_rows": cell.first,
        "test_rows": len(cell.test),
        "mean": float(cell.loads.mean()),
        "deviation": float(cell.loads.std()),
        "clipped": cell.clipped,
        "independent_rmse": None if math.isnan(least) else least,
    }


def _cpu_s() -> float:
    """Processor seconds of this process and the children it waited for; Prophet fits in a child."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
