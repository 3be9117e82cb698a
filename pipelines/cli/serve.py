"""`tidecast serve` and `autoscale`: forecasts, and the autoscaler query, until stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.policies import POLICIES
from pipelines.cli.options import settings_of_stack

app = typer.Typer(
    invoke_without_command=True, help="Serve forecasts until stopped, by the path that `serving.path` names."
)


@app.callback()
def serve(context: typer.Context) -> None:
    """Serve forecasts by the path of `serving.path` until SIGTERM or ctrl-C; the serving DAG runs the same.

    Raises:
        SettingsError, BrokerError: a wrong setting; no broker answers at the start (status 2).
        StoreError, SocketError, OSError: fast path only, see `fast`.
    """
    if context.invoked_subcommand is None:
        from pipelines.serve.path import serve as serve_forever

        serve_forever(settings_of_stack())


@app.command()
def fast() -> None:
    """Serve by the fast path: an LMDB store, a Unix socket, HTTP on the loopback, and the broker where one is set.

    Runs until SIGTERM or ctrl-C, or until another server takes over. Prints where it listens (`serving.http_port`; 0:
    any free port); its files are in the folder `serving.store` under `var`.

    Raises:
        StoreError: the store cannot be opened or written, or another process serves on its folder (status 2).
        SocketError, BrokerError: the socket cannot be opened; the broker does not answer at the start (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: a file beside the store cannot be made.
    """
    from pipelines.serve.path import serve as serve_forever

    serve_forever(settings_of_stack(serving={"path": "fast"}))


def autoscale(
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where the query keeps its state; by default `autoscaler` under `var`.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
) -> None:
    """Run the autoscaler query until SIGTERM or ctrl-C: it reads metrics and forecasts and publishes decisions.

    Raises:
        SettingsError, BrokerError, JavaError, JarsError: Spark or the broker cannot be used (status 2).
        SystemExit: the query failed; its error goes to stderr (status 1).
    """
    from pipelines.scale.autoscaler import run_autoscaler

    settings = settings_of_stack(autoscaler={"policy": policy})
    run_autoscaler(settings, (checkpoint or settings.var_dir / "autoscaler").absolute())
