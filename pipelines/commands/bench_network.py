"""`tidecast forecast bench`: how long the network takes, beside a peer in an environment of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Cell = Annotated[str, typer.Option(help="A shipped series and its step.")]
Horizon = Annotated[int, typer.Option(min=1, help="Steps ahead.")]
Peer = Annotated[Path | None, typer.Option(help="Interpreter of an environment that has neuralforecast.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


def bench(cell: Cell = "taxi 5min", horizon: Horizon = 12, peer: Peer = None, as_json: JsonFile = None) -> None:
    """Time the network's fit, its step, and a thousand series in one step; one thread, one run."""
    from pipelines.study.bench_network import measure
    from pipelines.study.shipped import find

    found = measure(find(cell).series(), horizon, peer)
    print(json.dumps(found, indent=1))
    if as_json is not None:
        as_json.write_text(json.dumps(found, indent=1))
