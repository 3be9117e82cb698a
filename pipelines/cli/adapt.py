"""`tidecast adapt`: what other loads teach a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, command_group, print_progress, split_names
from pipelines.figures.written import write_figure

app = command_group("Move forecasters between loads.")


@app.command("evaluate")
def compare_transfers(
    days: Annotated[str, typer.Option(help="Days of target history, separated by commas.")] = "1,3,7",
    quick: Annotated[bool, typer.Option("--quick", help="One moment per target.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Forecast every shipped 5-minute load from a short history, alone and helped by every other load.

    Prints RMSE ÷ that of the best model from the load's own history, the geometric mean over pairs of loads: by model,
    length of history and steps ahead. Takes an hour; a line per pair goes to stderr.

    Raises:
        SeriesError: `days` is no list of whole numbers from 1 on, or no shipped series is long enough (status 2).
        TraceError: a shipped series is gone or damaged (status 2).
        OSError: the JSON file cannot be written.
    """
    import torch

    from models.forecast.core.series import SeriesError
    from pipelines.bench.adapt.adaptation import Study, evaluate_pairs, read_loads
    from pipelines.bench.adapt.summary import format_summary, summarise_pairs

    torch.set_num_threads(1)
    try:
        lengths = tuple(sorted({int(part) for part in split_names(days)}))
    except ValueError:
        raise SeriesError(f"--days {days}: whole numbers separated by commas are expected, e.g. 1,3,7") from None
    if not lengths or lengths[0] < 1:
        raise SeriesError(f"--days {days}: at least one day of history is expected")
    study = Study(days=lengths, cuts=1 if quick else 2)
    seen = list(evaluate_pairs(read_loads(), study, report_progress=print_progress))
    if not seen:
        raise SeriesError(f"--days {days}: no shipped series is long enough; try fewer days")
    figures = summarise_pairs(seen, study)
    print(format_summary(figures))
    write_figure(as_json, figures)
