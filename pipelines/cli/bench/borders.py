"""`tidecast bench fuzz`: damaged inputs before everything that reads what comes from outside."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_damaged_inputs(
    count: Annotated[int, typer.Option("--inputs", min=1, help="For each border.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the damage.")] = 7,
    as_json: JsonFile = None,
) -> None:
    """Give damaged messages, frames, YAML, CSV, artifacts and states to what reads them; none may end it.

    Prints a line per border, then each input that ended a reader or was accepted wrongly; status 0.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.borders.fuzz import fuzz_borders

    figures = fuzz_borders(count, seed)
    for name, border in figures["borders"].items():
        for what, shown, why in border["faults"]:
            print(f"{name}: {what}: {shown}: {why}")
    print(f"{figures['inputs']:,} inputs, {figures['crashed']} crashed, {figures['unsound']} unsound")
    write_figure(as_json, figures)
