"""`tidecast bench deadline`: backfills that are to be done by a deadline."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, resumed_from, split_names
from pipelines.figures.written import write_figure


def measure_deadlines_kept(
    loads: Annotated[str, typer.Option(help="Files or shipped series, with commas between; else twelve.")] = "",
    sure: Annotated[float, typer.Option(min=0.01, max=0.99, help="Probability that is asked for.")] = 0.9,
    resume: Annotated[bool, typer.Option("--resume", help="Take from the JSON file the backfills it has.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Plan 200 backfills beside loads in the twin by forecasts alone: is each done by its deadline, and for how much?

    Prints a line per backfill, some seconds each. Work is 5 to 50 % of a live day, the deadline 1.2 to 4 times the
    shortest; all is drawn by hashes of the loads' names.

    Raises:
        SettingsError: `--resume` without `--json` (status 2).
        SeriesError, TraceError: a load cannot be read (status 2).
        OSError, ValueError: the JSON file cannot be read or written.
    """
    from pipelines.bench.twin.deadline import COUNT, measure_deadlines
    from pipelines.bench.twin.deadline_draw import LOADS

    kept, save = resumed_from(as_json, resume), partial(write_figure, as_json)
    names = split_names(loads) if loads else list(LOADS)
    found = measure_deadlines(names, COUNT, sure, kept, save)
    if found["n"]:
        beside = found["beside_clairvoyant"]
        print(
            f"{found['n']} planned, {found['refused']} refused: {found['kept']:.1%} kept at {sure:g}; median cost "
            f"{found['beside_once']:.3f} x at once" + (f", {beside:.3f} x the least possible" if beside else "")
        )
    write_figure(as_json, found)
