"""`tidecast metrics`: what Prometheus scrapes, and alerts to webhooks, until stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import settings_of_stack


def metrics(
    host: Annotated[str, typer.Option(help="Address to listen on; the loopback by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 9464,
) -> None:
    """Expose metrics of every job for Prometheus, and post alerts to the contracts' webhooks, until stopped.

    One process beside all others: it reads topics, lake and contracts, and changes nothing of them.

    Raises:
        SettingsError, BrokerError: a wrong setting; no broker is set (status 2).
        EndpointError: the address cannot be listened on (status 2).
    """
    from pipelines.alerts.follower import run_follower

    run_follower(settings_of_stack(), host, port)
