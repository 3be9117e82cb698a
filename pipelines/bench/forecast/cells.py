"""Many series, shipped cells or files, evaluated alike: what models are worth beside naive and published forecasts."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

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


class Published(NamedTuple):
    """The best published method of a cell, and of how many steps ahead its authors averaged the forecasts."""

    method: str
    rmse: float
    averaged: int


def published() -> dict[str, Published]:
    """By cell."""
    found = json.loads((files("pipelines.bench.forecast") / "published.json").read_text(encoding="utf-8"))
    averaged = found["averaged"]
    return {cell: Published(name, rmse, averaged[cell.split()[1]]) for cell, (name, rmse) in found["best"].items()}


def measure_all(models: Iterable[str], horizon: int, jobs: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """`measure` of every shipped cell in `jobs` processes; `tell` is told of each as it is done."""
    work = partial(measure, models=list(models), horizon=horizon)
    return in_processes(work, [cell.cell for cell in shipped()], jobs, tell)


def measure_files(
    paths: Iterable[Path], read: Callable[[Path], Series], models: Iterable[str], horizon: int, jobs: int,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """`row` of every file's series in `jobs` processes, in the order of the files; `read` must be picklable."""
    work = partial(_measure_file, read=read, models=list(models), horizon=horizon)
    return in_processes(work, [str(path) for path in paths], jobs, tell)


def in_processes(
    work: Callable[[str], dict[str, Any]], names: list[str], jobs: int, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """What `work` makes of each name, in their order; `tell` is told of each that is done; one job needs no process."""
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        done: Iterable[tuple[str, dict[str, Any]]] = ((name, work(name)) for name in names)
        if jobs > 1:
            pool = stack.enter_context(ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")))
            running = {pool.submit(work, name): name for name in names}
            done = ((running[one], one.result()) for one in as_completed(running))
        for name, made in done:
            found[name] = made
            tell(f"{name} ({len(found)} of {len(names)})")
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
    found, naive = figures(evaluation), evaluation.best_naive
    least_rmse = found["models"][naive]["horizons"]["1"]["rmse"]
    least_pinball = min(found["models"][name]["pinball"] for name in NAIVE)
    rows: dict[str, Any] = {}
    for name, model in found["models"].items():
        rmse, backtest = model["horizons"]["1"]["rmse"], evaluation.rivals[name].backtest
        rows[name] = {
            **{key: model[key] for key in ("kind", "pinball", "train_s", "predict_us")},
            "rmse": rmse,
            "ratio": rmse / least_rmse if least_rmse else None,
            "between": _between(backtest, evaluation.rivals[naive].backtest) if least_rmse else None,
            "pinball_ratio": model["pinball"] / least_pinball if least_pinball else None,
            "coverage": {h: by["coverage"] for h, by in model["horizons"].items()},
        }
        if said is not None:
            scored = scores.rmse(backtest.actual[:, 0], backtest.averaged(said.averaged))
            rows[name] |= {"as_published": scored, "published_ratio": scored / said.rmse}
    return {
        **{key: found[key] for key in ("unit", "test_steps", "best_naive", "champion", "skipped")},
        "cell": evaluation.name,
        "step": step_name(evaluation.task.step_s),
        "large": found["test_steps"] >= LARGE,
        "published": None if said is None else {"method": said.method, "rmse": said.rmse},
        "models": rows,
    }


def summary(cells: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """What a model is worth over all cells that it could be fitted to, and in which the best naive forecast errs.

    Geometric means of the ratios; `worst` of the large cells; `worse` are the smaller cells in which it is worse than
    the best naive forecast at 95 %; coverage deviations in points, over all large cells and horizons.
    """
    fitted = [(cell, cell["models"][model]) for cell in cells if model in cell["models"]]
    mine = [(cell, rows) for cell, rows in fitted if rows["ratio"] is not None]
    large = [(cell, rows) for cell, rows in mine if cell["large"]]

    def mean(key: str) -> float | None:
        ratios = [rows[key] for _, rows in mine if key in rows]
        return float(np.exp(np.mean(np.log(ratios)))) if ratios else None

    def worst(key: str) -> dict[str, Any] | None:
        return max(
            ({"cell": cell["cell"], "ratio": rows[key]} for cell, rows in large if key in rows),
            key=lambda found: found["ratio"],
            default=None,
        )

    def coverage(key: str) -> dict[str, float] | None:
        shares = [by[key] for _, rows in large for by in rows["coverage"].values() if by[key] is not None]
        off = [100 * (share - float(key)) for share in shares]
        return {"median": float(np.median(np.abs(off))), "worst": float(max(off, key=abs))} if off else None

    return {
        "cells": len(mine),
        "ratio": mean("ratio"),
        "worst": worst("ratio"),
        "worse": [cell["cell"] for cell, rows in mine if not cell["large"] and rows["between"][0] > 1],
        "published_ratio": mean("published_ratio"),
        "published_worst": worst("published_ratio"),
        "pinball_ratio": mean("pinball_ratio"),
        "coverage": {key: coverage(key) for key in ("0.8", "0.9", "0.95")},
        "train_s": max((rows["train_s"] for _, rows in mine), default=None),
        "predict_us": float(np.median([rows["predict_us"] for _, rows in mine])) if mine else None,
    }


def _measure_file(file: str, read: Callable[[Path], Series], models: list[str], horizon: int) -> dict[str, Any]:
    path = Path(file)
    series = read(path)
    return row(evaluate(f"{path.name} {step_name(series.step_s)}", series, horizon, models))


def _between(mine: Backtest, theirs: Backtest) -> list[float]:
    errors = [each.median[:, 0] - each.actual[:, 0] for each in (mine, theirs)]
    return list(rmse_ratio(errors[0], errors[1], np.random.default_rng(0)))
