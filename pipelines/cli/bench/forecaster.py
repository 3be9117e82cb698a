"""`tidecast forecast bench`: how long a network and the blend take, warm; the network beside a peer if asked."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.given import JsonFile
from pipelines.figures.written import write


class Timed(StrEnum):
    """What is timed."""

    gru = "gru"
    blend = "blend"


Model = Annotated[Timed, typer.Option(help="The network or the blend.")]
Cell = Annotated[str, typer.Option(help="A shipped series and its step, for the network.")]
Horizon = Annotated[int, typer.Option(min=1, help="Steps ahead.")]
Peer = Annotated[Path | None, typer.Option(help="Interpreter of an environment that has neuralforecast.")]
History = Annotated[int, typer.Option(min=1, help="Steps that each series of the blend's batch has seen.")]


def bench(
    model: Model = Timed.gru,
    cell: Cell = "taxi 5min",
    horizon: Horizon = 12,
    peer: Peer = None,
    history: History = 2304,
    as_json: JsonFile = None,
) -> None:
    """Time the network's fit and its step; or the blend's step and a thousand in a batch."""
    if model is Timed.blend:
        from pipelines.bench.forecast.speed import measure_blend

        found = measure_blend(history, horizon)
    else:
        from pipelines.bench.forecast.speed import measure_network
        from pipelines.traces.shipped import find

        found = measure_network(find(cell).series(), horizon, peer)
    print(json.dumps(found, indent=1))
    write(as_json, found)
