"""`tidecast drift`: whether lasting changes of a load are found, and how often one is reported for nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, command_group, one_model, print_progress, split_names
from pipelines.figures.written import write_figure

app = command_group("Judge the detectors of lasting changes.")


@app.command("evaluate")
def measure_detectors(
    positions: Annotated[int, typer.Option(min=1, help="Places per series at which every change is tried.")] = 40,
    model: Annotated[str, typer.Option(help="Kind of forecaster whose errors are followed.")] = "seasonal_naive",
    cells: Annotated[
        str, typer.Option(help="Shipped series, separated by commas; the six of the goal by default.")
    ] = "",
    as_json: JsonFile = None,
) -> None:
    """Change the mean of shipped series for good and count the changes found, and the alarms without one.

    Prints, by series and pooled, false alarms, share of changes by ± 30 % found within 50 steps, median delay (steps).

    Raises:
        SettingsError: no such model (status 2).
        SeriesError: no such series, or it is too short for the model, or for so many `positions` (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.drift.drift import format_detection, make_cases, measure_detection
    from pipelines.bench.forecast.breaks import CELLS

    figures = measure_detection(make_cases(one_model(model), positions, split_names(cells) or CELLS), print_progress)
    print(format_detection(figures))
    write_figure(as_json, figures)
