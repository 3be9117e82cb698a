"""`tidecast forecast`: how good forecasters are, on any series."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.cli.bench.forecaster import bench
from pipelines.cli.given import JsonFile
from pipelines.cli.table2 import table2
from pipelines.figures.written import write

if TYPE_CHECKING:
    from models.forecast.core.series import Series

app = typer.Typer(no_args_is_help=True, help="Evaluate forecasters on series from files.")
app.command("table2")(table2)
app.command("bench")(bench)

Page = Annotated[Path | None, typer.Option("--page", help="Also write a page that opens offline.")]


@app.command()
def evaluate(
    files: Annotated[list[Path], typer.Argument(help="CSV files (perhaps gzipped) with a time and a value column.")],
    step: Annotated[str | None, typer.Option(help="Length of a step, e.g. 5min; the file's own by default.")] = None,
    horizon: Annotated[int, typer.Option(min=1, help="Steps ahead.")] = 12,
    models: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
    time_column: Annotated[str | None, typer.Option(help="Name of the time column, if it is unusual.")] = None,
    value_column: Annotated[str | None, typer.Option(help="Name of the value column, if there are several.")] = None,
    timezone: Annotated[str, typer.Option(help="Of local times without an offset, e.g. Europe/Berlin.")] = "UTC",
    as_json: JsonFile = None,
    page: Page = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, where several files are named.")] = 2,
) -> None:
    """Judge models on the newest fifth of a series, which none of them has seen; of several, by their means."""
    from pipelines.bench.forecast.evaluate import evaluate as evaluate_series
    from pipelines.bench.forecast.evaluate import figures
    from pipelines.bench.forecast.text import table
    from pipelines.traces.series_file import parse_step, read_series

    read = partial(
        read_series,
        step_s=parse_step(step) if step else None,
        time_column=time_column,
        value_column=value_column,
        timezone=timezone,
    )
    if len(files) > 1:
        if page is not None:
            raise typer.BadParameter(f"--page shows one series, and {len(files)} files are named. Name one.")
        _evaluate_all(files, read, _listed(models), horizon, jobs, as_json)
        return
    evaluation = evaluate_series(
        files[0].name, read(files[0]), horizon, _listed(models), tell=lambda line: typer.echo(line, err=True)
    )
    found = figures(evaluation)
    print(table(found))
    write(as_json, found)
    if page is not None:
        from pipelines.bench.forecast.evaluation_page import render

        print(f"page: {render(evaluation, found, page)}")


@app.command("table")
def shipped_table(
    models: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "ridge,blend",
    horizon: Annotated[int, typer.Option(min=12, help="Steps ahead; published forecasts reach 12.")] = 12,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonFile = None,
) -> None:
    """Judge models on every shipped series and step, beside naive and published forecasts."""
    from pipelines.bench.forecast.cells import measure_all
    from pipelines.bench.forecast.evaluate import asked_for

    names = asked_for(_listed(models))
    _tell_all(measure_all(names, horizon, jobs, lambda line: typer.echo(line, err=True)), names, as_json)


@app.command("breaks")
def lasting_breaks(
    model: Annotated[str, typer.Option(help="Whose forecasts are judged, a name of the catalogue.")] = "blend",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonFile = None,
) -> None:
    """Judge a model on every shipped series after its load has fallen to a thirtieth, or doubled, for good."""
    from models.forecast.selection.catalogue import named
    from pipelines.bench.forecast.lasting import measure_all, summary, table

    (name,) = named([model])
    cells = measure_all(name, jobs, lambda line: typer.echo(line, err=True))
    sums = summary(cells)
    print(table(cells, sums))
    write(as_json, {"model": name, "cells": cells, "summary": sums})


def _evaluate_all(
    files: list[Path],
    read: Callable[[Path], Series],
    models: list[str],
    horizon: int,
    jobs: int,
    as_json: Path | None,
) -> None:
    from pipelines.bench.forecast.cells import measure_files
    from pipelines.bench.forecast.evaluate import asked_for

    names = asked_for(models)
    cells = measure_files(files, read, names, horizon, jobs, lambda line: typer.echo(line, err=True))
    _tell_all(cells, names, as_json)


def _tell_all(cells: list[dict[str, Any]], names: list[str], as_json: Path | None) -> None:
    from models.forecast.selection.catalogue import NAIVE
    from pipelines.bench.forecast.cells import summary
    from pipelines.bench.forecast.evaluate import CHAMPION
    from pipelines.bench.forecast.text import table_of_cells

    sums = {name: summary(cells, name) for name in [*names, CHAMPION] if name not in NAIVE}
    print(table_of_cells(cells, sums))
    write(as_json, {"cells": cells, "summary": sums})


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
