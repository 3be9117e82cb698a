"""`tidecast adapt`: what other loads teach a new one."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, command_group, print_progress, split_names
from pipelines.figures.written import write_figure

app = command_group("Move forecasters between loads.")


@app.command("evaluate")
def compare_transfers(
    days: Annotated[str, typer.Option(help="Days of target history, separated by commas.")] = "0.5,1,2",
    quick: Annotated[bool, typer.Option("--quick", help="One moment per target.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Forecast every shipped 5-minute load from a short history, alone, helped by every other load, and by all at once.

    Prints RMSE ÷ that of the best model from the load's own history, the geometric mean over pairs of loads: by model,
    length of history and steps ahead; and of a network pre-trained on all other loads RMSE ÷ that of what serves
    without a source. Takes an hour; a line per load goes to stderr.

    Raises:
        SeriesError: `days` is no list of numbers from 0.5 on, or no shipped series is long enough (status 2).
        TraceError: a shipped series is gone or damaged (status 2).
        OSError: the JSON file cannot be written.
    """
    import torch

    from models.forecast.core.series import SeriesError
    from pipelines.bench.adapt.adaptation import Study, evaluate_pairs, read_loads
    from pipelines.bench.adapt.pretrained import evaluate_pretrained, summarise_pretrained
    from pipelines.bench.adapt.summary import format_summary, summarise_pairs
    from pipelines.html.columns import of_rows

    torch.set_num_threads(1)
    try:
        lengths = tuple(sorted({float(part) for part in split_names(days)}))
    except ValueError:
        raise SeriesError(f"--days {days}: numbers separated by commas are expected, e.g. 0.5,1,2") from None
    if not lengths or not all(0.5 <= length < math.inf for length in lengths):
        raise SeriesError(f"--days {days}: at least half a day of history is expected")
    study = Study(days=lengths, cuts=1 if quick else 2)
    loads = read_loads()
    seen = list(evaluate_pairs(loads, study, report_progress=print_progress))
    if not seen:
        raise SeriesError(f"--days {days}: no shipped series is long enough; try fewer days")
    pretrained = summarise_pretrained(list(evaluate_pretrained(loads, study, report_progress=print_progress)))
    figures = {**summarise_pairs(seen, study), "pretrained": pretrained["days"], "moved": pretrained["rows"]}
    print(format_summary(figures))
    print("\n".join(of_rows(figures["moved"])))
    write_figure(as_json, figures)
