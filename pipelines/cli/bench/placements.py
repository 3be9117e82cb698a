"""`tidecast bench placement`: plans beside the best there are."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_placements(
    graphs: Annotated[int, typer.Option(min=1, help="Small random graphs that are cut into blocks.")] = 200,
    as_json: JsonFile = None,
) -> None:
    """Cut small random graphs into blocks by KFM and simpler ways: how often is the cheapest found?

    Takes half a minute. All blocks of a graph are looked at for the cheapest.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.placement.blocks import measure_blocks

    found = measure_blocks(graphs)
    for way, one in found.items():
        gap = "" if one["gap"] is None else f", {one['gap']:.2%} above it in the mean"
        print(f"{way}: {one['optimal']:.1%} of {one['n']} at the optimum{gap}")
    write_figure(as_json, {"small": found})
