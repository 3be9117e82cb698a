"""`tidecast bench backfill`: replays beside a live job, for real."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.options import JsonFile, split_names
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure


def measure_real_backfills(
    rows: Annotated[str, typer.Option(help="Rows of the table, with commas between; all by default.")] = "",
    minutes: Annotated[
        float | None,
        typer.Option(min=0.2, help="Minutes of a session; in fewer than a row's own nothing is judged."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the last call stopped.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure what a replay costs live records, how soon it is done beside other ways, and whether deadlines are kept.

    Starts a broker and a Spark cluster of its own, and a job on four executors in each session; all rows take some
    ten hours, `--rows latency-steady` two. Prints a line per session, and what is left. Finished sessions
    are kept: for `--resume`, and for figures of the other rows. Without it those of the rows that are named are deleted
    first. Rows of which none is kept stay in the file of `--json` as they are, so that they may be measured one by one.

    Raises:
        SettingsError: an unknown row, or the address of a service is set, which must not be filled (status 2).
        StackError, ProcessError, PortError, BrokerError: broker, cluster or job do not start or answer (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        RunError: what a session left is broken (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.backfill.measure import measure_backfills
    from pipelines.bench.backfill.text import format_figures

    save = partial(write_figure, as_json)
    before = read_figure(as_json).data if as_json is not None and as_json.exists() else None
    figures = measure_backfills(load(), split_names(rows), minutes, resume, save, before)
    print(format_figures(figures))
    save(figures)
