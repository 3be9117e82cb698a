"""`tidecast bench lake`: what the lake takes on disk, and in the memory of who reads it."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.given import JsonFile
from pipelines.figures.written import write


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer days and jobs: shows that everything runs.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure megabytes per job and day, and the driver's memory for a day, a year, and 500 jobs."""
    from pipelines.bench.lake.reading import measure

    write(as_json, measure(quick))
