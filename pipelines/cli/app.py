"""`tidecast`: the front door. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import NoReturn

import typer

from configs.errors import CorrectableError, SettingsError
from configs.settings import load
from pipelines.cli import pool, serve, traces, twin
from pipelines.cli.advise import advise
from pipelines.cli.backfill import backfill
from pipelines.cli.backtest import backtest
from pipelines.cli.bench import commands as bench
from pipelines.cli.codecs import codecs
from pipelines.cli.contract import commands as contract
from pipelines.cli.demo import compare, report, run
from pipelines.cli.learning import adapt, drift, forecast, models
from pipelines.cli.metrics import metrics
from pipelines.cli.placement import job
from pipelines.cli.placement.plan import plan
from pipelines.cli.serve import autoscale
from pipelines.cli.stack import backup, doctor, down, restore, up
from pipelines.cli.switch_on import switch_on
from pipelines.stack.ports import bypass_proxies

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecast-driven autoscaling of Spark Structured Streaming.",
)
for command in (
    run, compare, up, down, switch_on, doctor, backup, restore, report, advise, backtest, autoscale, metrics, backfill,
    codecs, plan,
):  # fmt: skip
    app.command()(command)
for noun, group in {
    "job": job, "contract": contract, "models": models, "bench": bench, "forecast": forecast, "adapt": adapt,
    "drift": drift, "serve": serve, "traces": traces, "twin": twin, "pool": pool,
}.items():  # fmt: skip
    app.add_typer(group.app, name=noun)


def _cut_help(commands: typer.Typer) -> None:
    """Let `--help` show a command's docstring up to its `Raises:`, which is for readers of the code."""
    for command in commands.registered_commands:
        command.help = (inspect.getdoc(command.callback) or "").partition("\nRaises:")[0]
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _cut_help(group.typer_instance)


_cut_help(app)


def main() -> None:
    """Run the command line of this process; an error that a person can correct is one line instead of a traceback.

    Any other error of a command passes, with a traceback and status 1. Services on the loopback are asked past proxies.

    Raises:
        SystemExit: 0; 1 where the command says that something was not as wanted; 2 for wrong options, and for every
            `CorrectableError` of a command (SettingsError, StackError, ...) and every file that cannot be used, whose
            message goes to stderr.
    """
    bypass_proxies(os.environ)
    try:
        app(standalone_mode=True)
    except CorrectableError as error:
        _end(str(error))
    except OSError as error:
        if not isinstance(error.filename, str):
            raise
        _end(f"{error.filename}: {error.strerror}.{_remedy(error)}")


def _end(said: str) -> NoReturn:
    print(f"tidecast: {said}", file=sys.stderr)
    raise SystemExit(2) from None


def _remedy(error: OSError) -> str:
    """What helps where `var`, a folder on the way to it that is not there, or a file below it cannot be written."""
    try:
        var, file = load().var_dir, Path(error.filename).absolute()
        unmade = var.is_relative_to(file) and not file.is_dir()
    except (SettingsError, OSError):
        return ""
    missing = isinstance(error, FileNotFoundError)
    if unmade or (file.is_relative_to(var) and not missing):
        return " Set TIDECAST_VAR to a folder that can be written."
    return ""
