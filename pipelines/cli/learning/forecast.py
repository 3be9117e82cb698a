"""`tidecast forecast`: how good forecasters are, on any series, and how long they take."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli.options import (
    JsonFile,
    Page,
    Processes,
    Step,
    TimeColumn,
    Timezone,
    ValueColumn,
    command_group,
    one_model,
    print_progress,
    resumed_from,
    split_names,
)  # fmt: skip
from pipelines.figures.written import write_figure

app = command_group("Evaluate forecasters on series from files.")


class Timed(StrEnum):
    """Models that `bench` can time."""

    gru = "gru"
    blend = "blend"
    networked_blend = "networked_blend"


@app.command()
def evaluate(
    files: Annotated[list[Path], typer.Argument(help="CSV files (perhaps gzipped) with a time and a value column.")],
    step: Step = None,
    horizon: Annotated[int, typer.Option(min=1, help="Steps ahead.")] = 12,
    models: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
    time_column: TimeColumn = None,
    value_column: ValueColumn = None,
    timezone: Timezone = "UTC",
    as_json: JsonFile = None,
    page: Page = None,
    jobs: Processes = 2,
) -> None:
    """Train models on a series and judge their forecasts of its newest fifth; of several series, print the means.

    Prints RMSE and skill (1 − RMSE ÷ the best naive forecast's) of the first and the last step ahead, WAPE, pinball
    loss in the series' unit, coverage of the 80, 90 and 95 % intervals, and times; of several series, geometric means
    of RMSE ÷ that of the best naive forecast.

    Raises:
        TraceError: no such file, or a wrong row, column or step in it (status 2).
        typer.BadParameter: `page` with several files (status 2).
        SeriesError: `step` is no length of time, or a series cannot be read, is too short, or is constant (status 2).
        SettingsError: an unknown model (status 2).
        TypeError: no step of the newest fifth is known.
        OSError: the JSON file or the page cannot be written.
    """
    from pipelines.bench.forecast.cells import evaluate_files
    from pipelines.bench.forecast.evaluate import evaluate as evaluate_series
    from pipelines.bench.forecast.evaluate import resolve_models, score_evaluation
    from pipelines.bench.forecast.text import format_evaluation
    from pipelines.traces.series_file import parse_step, read_series

    read = partial(
        read_series, step_s=parse_step(step) if step else None, time_column=time_column, value_column=value_column,
        timezone=timezone,
    )  # fmt: skip
    if len(files) > 1:
        if page is not None:
            raise typer.BadParameter(f"--page shows one series, and {len(files)} files are named. Name one.")
        names = resolve_models(split_names(models))
        _print_summary(evaluate_files(files, read, names, horizon, jobs, print_progress), names, horizon, as_json)
        return
    evaluation = evaluate_series(
        files[0].name, read(files[0]), horizon, split_names(models), report_progress=print_progress
    )
    figures = score_evaluation(evaluation)
    print(format_evaluation(figures))
    write_figure(as_json, figures)
    if page is not None:
        from pipelines.bench.forecast.evaluation_page import write_page

        print(f"page: {write_page(evaluation, figures, page)}")


@app.command("table")
def shipped_table(
    models: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "ridge,blend,networked_blend",
    horizon: Annotated[int, typer.Option(min=12, help="Steps ahead; published forecasts reach 12.")] = 12,
    jobs: Processes = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the cells that the --json file holds.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Judge models on every shipped series and step, beside naive and published forecasts; takes minutes to hours.

    Prints a line per series and, for each model, the geometric mean of RMSE ÷ the best naive forecast's. Finished cells
    go to the JSON file at once, so that `--resume` goes on from there.

    Raises:
        SeriesError, TraceError: a series is too short for the horizon; its file is gone or damaged (status 2).
        SettingsError: an unknown model, `--resume` without `--json`, or from a file of other models or another horizon
            (status 2).
        FigureError: the file to resume from is no file of figures (status 2).
        OSError: the JSON file cannot be read or written.
    """
    from pipelines.bench.forecast.evaluate import resolve_models
    from pipelines.bench.forecast.shipped_cells import evaluate_all_shipped

    names, kept = resolve_models(split_names(models)), resumed_from(as_json, resume)
    cells = evaluate_all_shipped(names, horizon, jobs, print_progress, as_json, kept is not None)
    _print_summary(cells, names, horizon, as_json)


@app.command("breaks")
def lasting_breaks(
    model: Annotated[str, typer.Option(help="Whose forecasts are judged, a name of the catalogue.")] = "blend",
    jobs: Processes = 2,
    as_json: JsonFile = None,
) -> None:
    """Judge a model on every shipped series after its load has fallen to a thirtieth, or doubled, for good.

    Prints RMSE one step ahead ÷ that of the last value, over the first day, the second and all later ones.

    Raises:
        SeriesError, TraceError: a series is too short; its file is gone or damaged (status 2).
        SettingsError: an unknown model (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.forecast.lasting import evaluate_breaks_of_all, format_breaks, summarise_breaks

    name = one_model(model)
    cells = evaluate_breaks_of_all(name, jobs, print_progress)
    sums = summarise_breaks(cells)
    print(format_breaks(cells, sums))
    write_figure(as_json, {"model": name, "cells": cells, "summary": sums})


@app.command("bench")
def time_forecaster(
    model: Annotated[Timed, typer.Option(help="The network, the blend, or the blend that carries it.")] = Timed.gru,
    peer: Annotated[Path | None, typer.Option(help="Interpreter of an environment that has neuralforecast.")] = None,
    history: Annotated[int, typer.Option(min=1, help="Steps that each series of the blend's batch has seen.")] = 2304,
    as_json: JsonFile = None,
) -> None:
    """Time a network's training and one forecast; or the blend's forecast, alone and for a thousand series at once.

    Forecasts are 12 steps ahead; the network's series is `taxi 5min`. Prints JSON; names that end in `_s` are seconds,
    `_ms` milliseconds, `cpu` of the processor, else on the wall.

    Raises:
        SeriesError, TraceError: `--history` is longer than any shipped series; one is gone or damaged (status 2).
        FileNotFoundError, PeerError: `peer` is no interpreter, or what it runs fails.
        OSError: the JSON file cannot be written.
    """
    if model is not Timed.gru:
        from pipelines.bench.forecast.speed import time_blend

        figures = time_blend(history, networked=model is Timed.networked_blend)
    else:
        from pipelines.bench.forecast.speed import time_network

        figures = time_network(peer)
    print(json.dumps(figures, indent=1))
    write_figure(as_json, figures)


@app.command("table2")
def repeat_published_table(
    quick: Annotated[bool, typer.Option("--quick", help="The 5-minute cells only.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the rows that the --json file already holds.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Repeat a published comparison of GRU, CNN, ARIMA and Prophet on two sources at 5, 2 and 1 minutes.

    Prints SMAPE in per cent, and skill (1 − RMSE ÷ the last value's). Finished rows go to the JSON file at once, so
    that `--resume` goes on from there; all take hours.

    Raises:
        SettingsError: `--resume` without `--json` (status 2).
        SeriesError, FigureError: the file to resume from has another seed, or is no file of figures (status 2).
        TraceError: a shipped series is gone or damaged (status 2).
        OSError: the JSON file cannot be read or written.
    """
    from pipelines.bench.table2.loads import STEPS
    from pipelines.bench.table2.table import compute_table
    from pipelines.bench.table2.text import format_table2

    steps, kept = STEPS[:1] if quick else STEPS, resumed_from(as_json, resume)
    figures = compute_table(steps, file=as_json, resume=kept is not None, report_progress=print_progress)
    if quick:
        print("Quick form: the 5-minute cells only, trained in full.")
    print(format_table2(figures))


def _print_summary(cells: list[dict[str, Any]], names: list[str], horizon: int, as_json: Path | None) -> None:
    from models.forecast.selection.catalogue import NAIVE
    from pipelines.bench.forecast.cells import summarise_model
    from pipelines.bench.forecast.evaluate import CHAMPION
    from pipelines.bench.forecast.networks import summarise_networks
    from pipelines.bench.forecast.series_rows import series_rows
    from pipelines.bench.forecast.text import format_evaluations

    sums = {name: summarise_model(cells, name) for name in [*names, CHAMPION] if name not in NAIVE}
    print(format_evaluations(cells, sums))
    networks = summarise_networks(cells)
    asked = {"models": names, "horizon": horizon}
    found = {"cells": cells, "summary": sums, "series": series_rows(cells, list(sums)), "networks": networks}
    write_figure(as_json, {**asked, **found})
