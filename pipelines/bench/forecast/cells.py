"""Many series, shipped cells or files, evaluated alike: what models are worth beside naive and published forecasts."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.resources import files as packaged
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.core import scores
from models.forecast.core.bootstrap import rmse_ratio
from models.forecast.core.series import Series
from models.forecast.selection.backtest import Backtest
from models.forecast.selection.catalogue import NAIVE
from pipelines.bench.forecast.evaluate import Evaluation, evaluate, figures
from pipelines.traces.series_file import step_name
from pipelines.traces.shipped import find, shipped

LARGE = 300
"""Test rows from which a cell is judged by its ratio; in a smaller one, by whether it is worse at 95 %."""


@dataclass(frozen=True)
class Published:
    """The best published method of a cell, and of how many steps ahead its authors averaged the forecasts."""

    method: str
    rmse: float
    averaged: int


def published() -> dict[str, Published]:
    """By cell."""
    read = json.loads((packaged("pipelines.bench.forecast") / "published.json").read_text(encoding="utf-8"))
    return {
        cell: Published(method, rmse, read["averaged"][cell.split()[1]])
        for cell, (method, rmse) in read["best"].items()
    }


def measure_all(models: Iterable[str], horizon: int, jobs: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """`measure` of every shipped cell in `jobs` processes; `tell` is told of each as it is done."""
    work = partial(measure, models=list(models), horizon=horizon)
    return in_processes(work, [cell.cell for cell in shipped()], jobs, tell)


def measure_files(
    files: Iterable[Path],
    read: Callable[[Path], Series],
    models: Iterable[str],
    horizon: int,
    jobs: int,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """`row` of every file's series in `jobs` processes, in the order of the files; `read` must be picklable."""
    work = partial(_measure_file, read=read, models=list(models), horizon=horizon)
    return in_processes(work, [str(file) for file in files], jobs, tell)


def in_processes(
    work: Callable[[str], dict[str, Any]], names: list[str], jobs: int, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """What `work` makes of each name, in their order; `tell` is told of each that is done; one job needs no process."""
    found: dict[str, dict[str, Any]] = {}

    def keep(name: str, made: dict[str, Any]) -> None:
        found[name] = made
        tell(f"{name} ({len(found)} of {len(names)})")

    if jobs == 1:
        for name in names:
            keep(name, work(name))
        return [found[name] for name in names]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(work, name): name for name in names}
        for done in as_completed(running):
            keep(running[done], done.result())
    return [found[name] for name in names]


def measure(cell: str, models: list[str], horizon: int) -> dict[str, Any]:
    """`row` of a shipped cell."""
    place = find(cell)
    return row(evaluate(cell, place.series(), horizon, models, place.unit), published().get(cell))


def row(evaluation: Evaluation, said: Published | None = None) -> dict[str, Any]:
    """One series' figures as JSON values.

    `models` holds per model, the champion among them, its one-step `rmse`, its `ratio` to the best naive forecast's
    with the 95 % interval `between` (both None where that makes no error), its mean `pinball` over all horizons with
    `pinball_ratio` to the best naive forecast's, `coverage` by horizon as in `figures`, and, where something was
    published, `as_published` (RMSE scored as its authors did) with `published_ratio`.
    """
    found = figures(evaluation)
    naive = evaluation.best_naive
    least_rmse = found["models"][naive]["horizons"]["1"]["rmse"]
    least_pinball = min(found["models"][name]["pinball"] for name in NAIVE)
    rows: dict[str, Any] = {}
    for name, model in found["models"].items():
        rmse = model["horizons"]["1"]["rmse"]
        rows[name] = {
            "kind": model["kind"],
            "rmse": rmse,
            "ratio": rmse / least_rmse if least_rmse else None,
            "between": _between(evaluation, name, naive) if least_rmse else None,
            "pinball": model["pinball"],
            "pinball_ratio": model["pinball"] / least_pinball if least_pinball else None,
            "coverage": {h: by["coverage"] for h, by in model["horizons"].items()},
            "train_s": model["train_s"],
            "predict_us": model["predict_us"],
        }
        if said is not None:
            scored = _as_published(evaluation.rivals[name].backtest, said.averaged)
            rows[name] |= {"as_published": scored, "published_ratio": scored / said.rmse}
    return {
        "cell": evaluation.name,
        "step": step_name(evaluation.task.step_s),
        "unit": evaluation.unit,
        "test_steps": found["test_steps"],
        "large": found["test_steps"] >= LARGE,
        "best_naive": naive,
        "champion": evaluation.champion,
        "published": None if said is None else {"method": said.method, "rmse": said.rmse},
        "models": rows,
        "skipped": found["skipped"],
    }


def summary(cells: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """What a model is worth over all cells that it could be fitted to, and in which the best naive forecast errs.

    Geometric means of the ratios; `worst` of the large cells; `worse` are the smaller cells in which it is worse than
    the best naive forecast at 95 %; coverage deviations in points, over all large cells and horizons.
    """
    fitted = [(cell, cell["models"][model]) for cell in cells if model in cell["models"]]
    mine = [(cell, rows) for cell, rows in fitted if rows["ratio"] is not None]
    large = [(cell, rows) for cell, rows in mine if cell["large"]]
    compared = [(cell, rows) for cell, rows in mine if "published_ratio" in rows]
    return {
        "cells": len(mine),
        "ratio": _geometric(rows["ratio"] for _, rows in mine),
        "worst": _worst(large, "ratio"),
        "worse": [cell["cell"] for cell, rows in mine if not cell["large"] and rows["between"][0] > 1],
        "published_ratio": _geometric(rows["published_ratio"] for _, rows in compared),
        "published_worst": _worst([pair for pair in compared if pair[0]["large"]], "published_ratio"),
        "pinball_ratio": _geometric(rows["pinball_ratio"] for _, rows in mine),
        "coverage": {key: _deviations(large, key) for key in ("0.8", "0.9", "0.95")},
        "train_s": max((rows["train_s"] for _, rows in mine), default=None),
        "predict_us": float(np.median([rows["predict_us"] for _, rows in mine])) if mine else None,
    }


def _measure_file(file: str, read: Callable[[Path], Series], models: list[str], horizon: int) -> dict[str, Any]:
    path = Path(file)
    series = read(path)
    return row(evaluate(f"{path.name} {step_name(series.step_s)}", series, horizon, models))


def _between(evaluation: Evaluation, name: str, naive: str) -> list[float]:
    mine, theirs = (evaluation.rivals[each].backtest for each in (name, naive))
    errors = [each.median[:, 0] - each.actual[:, 0] for each in (mine, theirs)]
    return list(rmse_ratio(errors[0], errors[1], np.random.default_rng(0)))


def _as_published(backtest: Backtest, most: int) -> float:
    return scores.rmse(backtest.actual[:, 0], backtest.averaged(most))


def _geometric(ratios: Iterable[float]) -> float | None:
    listed = list(ratios)
    return float(np.exp(np.mean(np.log(listed)))) if listed else None


def _worst(pairs: list[tuple[dict[str, Any], dict[str, Any]]], key: str) -> dict[str, Any] | None:
    if not pairs:
        return None
    cell, rows = max(pairs, key=lambda pair: pair[1][key])
    return {"cell": cell["cell"], "ratio": rows[key]}


def _deviations(pairs: list[tuple[dict[str, Any], dict[str, Any]]], key: str) -> dict[str, float] | None:
    """Median and worst distance from what is stated, in points."""
    off = [100 * (by[key] - float(key)) for _, rows in pairs for by in rows["coverage"].values() if by[key] is not None]
    if not off:
        return None
    return {"median": float(np.median(np.abs(off))), "worst": float(max(off, key=abs))}
