"""`tidecast adapt`: what other loads teach a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.given import JsonFile, listed, noun, tell
from pipelines.figures.written import write_figure

app = noun("Move forecasters between loads.")


@app.command()
def evaluate(
    days: Annotated[str, typer.Option(help="Days of target history, separated by commas.")] = "1,3,7",
    quick: Annotated[bool, typer.Option("--quick", help="One moment per target.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Forecast every shipped 5-minute load from a short history, alone and helped by every other load."""
    import torch

    from models.forecast.core.series import SeriesError
    from pipelines.bench.adapt.adaptation import Study, evaluate_pairs, format_summary, read_loads, summarise_pairs

    torch.set_num_threads(1)
    try:
        lengths = tuple(sorted({int(part) for part in listed(days)}))
    except ValueError:
        raise SeriesError(f"--days {days}: whole numbers separated by commas are expected, e.g. 1,3,7") from None
    if not lengths or lengths[0] < 1:
        raise SeriesError(f"--days {days}: at least one day of history is expected")
    study = Study(days=lengths, cuts=1 if quick else 2)
    seen = list(evaluate_pairs(read_loads(), study, tell=tell))
    if not seen:
        raise SeriesError(f"--days {days}: no shipped series is long enough; try fewer days")
    found = summarise_pairs(seen, study)
    print(format_summary(found))
    write_figure(as_json, found)
