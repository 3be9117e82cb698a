"""`tidecast drift`: whether lasting changes of a load are found, and how often one is reported for nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.given import JsonFile, listed, noun, tell
from pipelines.figures.written import write_figure

app = noun("Judge the detectors of lasting changes.")


@app.command()
def evaluate(
    positions: Annotated[int, typer.Option(min=1, help="Places per series at which every change is tried.")] = 40,
    model: Annotated[str, typer.Option(help="Kind of forecaster whose errors are followed.")] = "seasonal_naive",
    cells: Annotated[
        str, typer.Option(help="Shipped series, separated by commas; the six of the goal by default.")
    ] = "",
    as_json: JsonFile = None,
) -> None:
    """Put lasting changes of the mean into shipped series and count what is found, and what is found without one."""
    from models.forecast.selection.catalogue import select_kinds
    from pipelines.bench.drift.drift import format_detection, make_cases, measure_detection
    from pipelines.bench.forecast.breaks import CELLS

    found = measure_detection(make_cases(select_kinds([model])[0], positions, listed(cells) or CELLS), tell)
    print(format_detection(found))
    write_figure(as_json, found)
