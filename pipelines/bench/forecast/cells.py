"""Many series, shipped cells or files, evaluated alike: what models are worth beside naive and published forecasts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
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
from pipelines.bench.forecast.evaluate import Evaluation, evaluate, score_evaluation
from pipelines.traces.series_file import format_step
from pipelines.traces.shipped import find_shipped
from pipelines.workers import worker_pool

LARGE = 300
"""Test steps from which a series is judged by its ratio; a shorter one, by whether it is worse at 95 %."""


class Published(NamedTuple):
    """The best published result for a series.

    Attributes:
        method: its name.
        rmse: in the unit of the series.
        averaged: a forecast was the mean of those issued 1 to so many steps ahead.
    """

    method: str
    rmse: float
    averaged: int


def read_published() -> dict[str, Published]:
    """Read the best published result of every shipped series and step for which there is one, by "name step"."""
    content = json.loads((files("pipelines.bench.forecast") / "published.json").read_text(encoding="utf-8"))
    averaged = content["averaged"]
    return {cell: Published(name, rmse, averaged[cell.split()[1]]) for cell, (name, rmse) in content["best"].items()}


def evaluate_files(
    paths: Iterable[Path], read: Callable[[Path], Series], models: Iterable[str], horizon: int, processes: int,
    report_progress: Callable[[str], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Evaluate models on the series of every file.

    Args:
        paths: of the files.
        read: makes a series of a path; picklable where there are several processes.
        models: names of the catalogue, or "all".
        horizon: steps ahead.
        processes: how many; 1 for this one.
        report_progress: is called with a line of progress as each is done.

    Returns:
        `summarise_evaluation` of every file, in their order.

    Raises:
        SettingsError: an unknown model.
        SeriesError: a series is too short for the horizon; also whatever `read` raises.
    """
    work = partial(_evaluate_file, read=read, models=list(models), horizon=horizon)
    return map_in_processes(work, [str(path) for path in paths], processes, report_progress)


def map_in_processes(
    work: Callable[[str], dict[str, Any]], names: list[str], processes: int, report_progress: Callable[[str], None],
    finished: Callable[[dict[str, Any]], None] = lambda result: None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Apply a function to every name in spawned processes, or in this one; blocks until all are done.

    Args:
        work: from a name to its result; picklable where there are several processes.
        names: each once.
        processes: how many; 1 for this one.
        report_progress: called in this process with "NAME (done of all)" as each is done, in any order.
        finished: called in this process with each result before that.

    Returns:
        The results in the order of the names.

    Raises:
        Exception: the first that `work` raises, in several processes once all others have ended; the results are lost.
        BrokenProcessPool: a process died.
    """
    results: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        done: Iterable[tuple[str, dict[str, Any]]] = ((name, work(name)) for name in names)
        if processes > 1:
            pool = stack.enter_context(worker_pool(processes))
            running = {pool.submit(work, name): name for name in names}
            done = ((running[one], one.result()) for one in as_completed(running))
        for name, result in done:
            results[name] = result
            finished(result)
            report_progress(f"{name} ({len(results)} of {len(names)})")
    return [results[name] for name in names]


def evaluate_shipped(label: str, models: list[str], horizon: int) -> dict[str, Any]:
    """Evaluate models on a shipped series, e.g. "iot 5min", see `summarise_evaluation`.

    Raises:
        SeriesError: there is none of that name, or it is too short for the horizon.
        SettingsError: an unknown model.
    """
    shipped = find_shipped(label)
    return summarise_evaluation(
        evaluate(label, shipped.series(), horizon, models, shipped.unit), read_published().get(label)
    )


def summarise_evaluation(evaluation: Evaluation, best_published: Published | None = None) -> dict[str, Any]:
    """Summarise one series' evaluation as JSON values.

    Args:
        evaluation: of all models.
        best_published: the best published result for the series, if there is one.

    Returns:
        `cell` (the series' name), `step` (e.g. "5min"), `unit`, `test_steps`, `large` (whether at least 300),
        `best_naive` and `champion` (kinds of model: lowest one-step RMSE; chosen on the training steps), `skipped` (why
        a model was not fitted, by name), `published` (`method` and `rmse`, or None), and `models`: by name, the
        champion among them, `kind`, one-step `rmse` in `unit`, `ratio` (RMSE ÷ the best naive forecast's) with its 95 %
        bootstrap interval `between`, [low, high] (both None where that forecast makes no error), mean `pinball` loss
        over all steps ahead in `unit` and `pinball_ratio` (÷ the lowest of a naive forecast, None where that is 0),
        `coverage` (by steps ahead "1", "2"..., then by prediction interval "0.8"..., a share 0..1 or None), `train_s`
        (seconds), `predict_us` (median µs per step), `network_share` (see `EvaluatedModel`); with a published result
        also `as_published` (RMSE scored as its authors did) and `published_ratio` (÷ theirs).

    Raises:
        SeriesError: only one test step has a known outcome.
        TypeError: no test step has one.
    """
    figures, naive = score_evaluation(evaluation), evaluation.best_naive
    least_rmse = figures["models"][naive]["horizons"]["1"]["rmse"]
    least_pinball = min(figures["models"][name]["pinball"] for name in NAIVE)
    rows: dict[str, Any] = {}
    for name, model in figures["models"].items():
        rmse, backtest = model["horizons"]["1"]["rmse"], evaluation.contenders[name].backtest
        rows[name] = {
            **{key: model[key] for key in ("kind", "pinball", "train_s", "predict_us")},
            "rmse": rmse,
            "ratio": rmse / least_rmse if least_rmse else None,
            "between": _between(backtest, evaluation.contenders[naive].backtest) if least_rmse else None,
            "pinball_ratio": model["pinball"] / least_pinball if least_pinball else None,
            "coverage": {h: by["coverage"] for h, by in model["horizons"].items()},
            "network_share": evaluation.contenders[name].network_share,
        }
        if best_published is not None:
            scored = scores.rmse(backtest.actual[:, 0], backtest.mean_of_medians(best_published.averaged))
            rows[name] |= {"as_published": scored, "published_ratio": scored / best_published.rmse}
    return {
        **{key: figures[key] for key in ("unit", "test_steps", "best_naive", "champion", "skipped")},
        "cell": evaluation.name,
        "step": format_step(evaluation.task.step_s),
        "large": figures["test_steps"] >= LARGE,
        "published": None if best_published is None else {"method": best_published.method, "rmse": best_published.rmse},
        "models": rows,
    }


def summarise_model(cells: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """Summarise a model over all series to which it could be fitted and on which the best naive forecast errs.

    Args:
        cells: a series each, as from `summarise_evaluation`.
        model: its name.

    Returns:
        `cells` (how many); geometric means of `ratio` (one-step RMSE ÷ the best naive forecast's), `published_ratio`
        and `pinball_ratio`, None without a series; `worst` and `published_worst`, dicts of `cell` (name) and `ratio`,
        the largest over the series with 300 test steps or more, or None; `worse`, names of the shorter series where the
        whole 95 % bootstrap interval of the ratio is above 1; `coverage`, by prediction interval "0.8", "0.9" and
        "0.95" None or deviations from it in percentage points over the long series and all steps ahead, `median`
        (absolute) and `worst` (signed); `train_s`, the longest in seconds; `predict_us`, the median in µs; both None
        without a series.

    Raises:
        KeyError: a dict is not as from `summarise_evaluation`.
        TypeError: a `pinball_ratio` is None.
    """
    fitted = [(cell, cell["models"][model]) for cell in cells if model in cell["models"]]
    judged = [(cell, rows) for cell, rows in fitted if rows["ratio"] is not None]
    large = [(cell, rows) for cell, rows in judged if cell["large"]]

    def mean(key: str) -> float | None:
        ratios = [rows[key] for _, rows in judged if key in rows]
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
        "cells": len(judged),
        "ratio": mean("ratio"),
        "worst": worst("ratio"),
        "worse": [cell["cell"] for cell, rows in judged if not cell["large"] and rows["between"][0] > 1],
        "published_ratio": mean("published_ratio"),
        "published_worst": worst("published_ratio"),
        "pinball_ratio": mean("pinball_ratio"),
        "coverage": {key: coverage(key) for key in ("0.8", "0.9", "0.95")},
        "train_s": max((rows["train_s"] for _, rows in judged), default=None),
        "predict_us": float(np.median([rows["predict_us"] for _, rows in judged])) if judged else None,
    }


def _evaluate_file(file: str, read: Callable[[Path], Series], models: list[str], horizon: int) -> dict[str, Any]:
    path = Path(file)
    series = read(path)
    return summarise_evaluation(evaluate(f"{path.name} {format_step(series.step_s)}", series, horizon, models))


def _between(mine: Backtest, theirs: Backtest) -> list[float]:
    errors = [each.median[:, 0] - each.actual[:, 0] for each in (mine, theirs)]
    return list(rmse_ratio(errors[0], errors[1], np.random.default_rng(0)))
