"""`tidecast bench team`: what a team has of pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from pipelines.cli.options import JsonFile, choose_names
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure


def measure_team(
    parts: Annotated[str, typer.Option(help="Of the bench, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Divide a pool that is too small for its jobs' peaks: what do late seconds cost, beside other ways to divide it?

    `pools`: twenty drawn mixes of three to five jobs in the twin, a day each, and how long a division of 500 jobs
    takes; ten minutes. What the file of `--json` says of other parts stays.

    Raises:
        SettingsError: an unknown part (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.team.pools import measure_pools

    ways: dict[str, Callable[[], dict[str, Any]]] = {"pools": lambda: measure_pools(print)}
    found = dict[str, Any]()
    names = choose_names("--parts", parts, ways)
    if as_json is not None and as_json.exists():
        found |= read_figure(as_json).data
    for name in names:
        found[name] = ways[name]()
        write_figure(as_json, found)
        print(f"{name}: measured", flush=True)
