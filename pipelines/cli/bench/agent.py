"""`tidecast bench agent`: what the agent costs the job it is attached to."""

from __future__ import annotations

from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.given import JsonFile
from pipelines.figures.written import write


def bench(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs, with and without the agent.")] = 8,
    as_json: JsonFile = None,
) -> None:
    """Measure what the agent costs: throughput with ÷ without it, and its share of a core."""
    from pipelines.bench.agent.overhead import run as run_bench

    write(as_json, run_bench(load(), pairs))
