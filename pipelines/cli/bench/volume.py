"""`tidecast bench volume`: bytes a day that one job leaves on the broker."""

from __future__ import annotations

from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.given import JsonFile
from pipelines.figures.written import write


def bench(
    minutes: Annotated[float, typer.Option(min=1, help="For how long a job is reported.")] = 30.0,
    quick: Annotated[bool, typer.Option("--quick", help="Three minutes.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure what one job, its forecasts and its decisions come to on the broker's disk, a day."""
    from pipelines.bench.autoscaler.volume import measure

    write(as_json, measure(load(), 3.0 if quick else minutes))
