"""`tidecast serve` and `autoscale`: forecasts, and the autoscaler query, until stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.policies import POLICIES
from pipelines.cli.given import here

app = typer.Typer(
    invoke_without_command=True, help="Serve forecasts until stopped, by the path that `serving.path` names."
)


@app.callback()
def serve(context: typer.Context) -> None:
    """Serve forecasts until stopped; the serving DAG runs the same."""
    if context.invoked_subcommand is None:
        from pipelines.serve.path import serve as serve_forever

        serve_forever(here())


@app.command()
def fast() -> None:
    """Serve by the fast path: a store, a Unix socket, HTTP on the loopback, and the broker where one is set."""
    from pipelines.serve.fast.server import serve_fast

    serve_fast(here())


def autoscale(
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where the query keeps its state; by default `autoscaler` under `var`.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
) -> None:
    """Run the autoscaler query until stopped: it reads metrics and forecasts and publishes decisions."""
    from pipelines.scale.autoscaler import run

    settings = here(autoscaler={"policy": policy})
    run(settings, (checkpoint or settings.var_dir / "autoscaler").absolute())
