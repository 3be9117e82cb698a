"""`tidecast`: the front door. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import sys

import typer

from configs.errors import CorrectableError
from pipelines.cli import adapt, bench, drift, forecast, job, models, serve, twin
from pipelines.cli.backtest import backtest
from pipelines.cli.demo import compare, report, run
from pipelines.cli.serve import autoscale
from pipelines.cli.stack import doctor, down, up

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecast-driven autoscaling of Spark Structured Streaming.",
)
for command in (run, compare, up, down, doctor, report, backtest, autoscale):
    app.command()(command)
for noun in (job, models, bench, forecast, adapt, drift, serve, twin):
    app.add_typer(noun.app, name=noun.__name__.rsplit(".", 1)[-1])


def main() -> None:
    """Run the command line; where a person can correct the cause, print one line instead of a traceback.

    Raises:
        SystemExit: always: 0, the command's own status (1: something was not as wanted), 2 for wrong options or for a
            `CorrectableError`, whose message goes to stderr.
    """
    try:
        app(standalone_mode=True)
    except CorrectableError as error:
        print(f"tidecast: {error}", file=sys.stderr)
        raise SystemExit(2) from None
