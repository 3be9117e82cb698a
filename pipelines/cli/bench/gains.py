"""`tidecast bench headroom`: what a learned policy could gain."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, read_seconds, resumed_from, split_names
from pipelines.figures.written import write_figure


def measure_gains(
    loads: Annotated[
        str, typer.Option(help="Files or shipped series, with commas between; else the value map's as published.")
    ] = "",
    lead_s: Annotated[str, typer.Option(help="Seconds until an executor asked for works, with commas.")] = "600,1800",
    days: Annotated[float, typer.Option(min=1, help="Most days of each load, its newest.")] = 2.0,
    resume: Annotated[bool, typer.Option("--resume", help="Take from the JSON file the lead times it has.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure what a policy that sets the parameters of mpc could gain, in hindsight and by what it observes.

    Prints a line per load, lead time, capacity and share of late seconds, all in the twin; half an hour and more.

    Raises:
        SettingsError: `--resume` without `--json`, or from a file of other loads or days; a lead time that is no number
            above 0 (status 2).
        SeriesError, TraceError, TwinError: a load cannot be read, or is too short (status 2).
        FigureError: the file to resume from is no file of figures (status 2).
        OSError: the JSON file cannot be read or written.
    """
    from pipelines.backtest.load import RESTORED, list_map_loads
    from pipelines.bench.dqn.headroom import measure_headroom

    names = split_names(loads) if loads else [name for name in list_map_loads() if not name.endswith(RESTORED)]
    kept, save = resumed_from(as_json, resume), partial(write_figure, as_json)
    found = measure_headroom(names, read_seconds("--lead-s", lead_s), days, kept, save)
    for row in found["rows"]:
        what, median, worst, _ = row.values()
        print(f"{what:<60}{median if isinstance(median, str) else f'{median:.3f}'} x mpc, at worst {worst}")
    print(f"in {found['above']} of {found['judged']} cells, where mpc is above 1.10 x the optimum")
    write_figure(as_json, found)
