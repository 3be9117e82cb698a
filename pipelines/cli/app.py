"""`tidecast`: the front door. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import SettingsError
from configs.policies import POLICIES
from configs.settings import load
from pipelines.cli.adapt import app as adapt_app
from pipelines.cli.backtest import backtest
from pipelines.cli.bench.dqn import bench as bench_dqn
from pipelines.cli.bench.fastpath import bench as bench_fastpath
from pipelines.cli.bench.twin import bench as bench_twin
from pipelines.cli.demo import compare, report, run
from pipelines.cli.drift import app as drift_app
from pipelines.cli.forecast import app as forecast_app
from pipelines.cli.given import JsonFile, given, write
from pipelines.cli.models import app as models_app
from pipelines.cli.serve import app as serve_app
from pipelines.cli.stack import doctor, down, up
from pipelines.cli.twin import app as twin_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecast-driven autoscaling of Spark Structured Streaming.",
)
job_app = typer.Typer(no_args_is_help=True, help="Talk to a running job's agent.")
bench_app = typer.Typer(no_args_is_help=True, help="Measure; every command prints figures and fails on none.")
for command in (run, compare, up, down, doctor, report):
    app.command()(command)
app.add_typer(job_app, name="job")
app.add_typer(models_app, name="models")
app.add_typer(bench_app, name="bench")
app.add_typer(forecast_app, name="forecast")
app.add_typer(adapt_app, name="adapt")
app.add_typer(drift_app, name="drift")
app.add_typer(serve_app, name="serve")
app.command()(backtest)
app.add_typer(twin_app, name="twin")
bench_app.command("dqn")(bench_dqn)
bench_app.command("fastpath")(bench_fastpath)
bench_app.command("twin")(bench_twin)


@app.command()
def autoscale(
    checkpoint: Annotated[Path, typer.Option(help="Where the query keeps its state.")] = Path("var/autoscaler"),
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
) -> None:
    """Run the autoscaler query until stopped."""
    from configs.policies import BY_PEAKS, LEARNED
    from pipelines.scale import dqn, ears
    from pipelines.scale.autoscaler import run as run_autoscaler

    settings = given(autoscaler={"policy": policy})
    agents = dqn.source(settings) if settings.autoscaler.policy in LEARNED else None
    peaks = ears.source(settings) if settings.autoscaler.policy in BY_PEAKS else None
    run_autoscaler(settings, checkpoint.absolute(), agents, peaks)


@job_app.command("mode")
def job_mode(name: str, mode: str) -> None:
    """Switch a running job's agent: observe, act, or freeze."""
    from pipelines.stack.state import addressed, running
    from tidecast.control import set_mode
    from tidecast.messages import Control

    if mode not in Control.MODES:
        raise SettingsError(f"mode {mode!r} is unknown; choose among {', '.join(Control.MODES)}.")
    settings = load()
    if stack := running(settings.var_dir):
        settings = addressed(settings, stack.environment)
    if settings.kafka.bootstrap is None:
        raise SettingsError(
            "no stack is running and kafka.bootstrap is not set. Set TIDECAST_KAFKA__BOOTSTRAP=host:port."
        )
    set_mode(settings.kafka.bootstrap, name, mode, settings.kafka.security)
    print(f"{name}: {mode}")


@bench_app.command("agent")
def bench_agent(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs, with and without the agent.")] = 8,
    as_json: JsonFile = None,
) -> None:
    """Measure what the agent costs: throughput with ÷ without it, and its share of a core."""
    from pipelines.bench.agent.overhead import run as run_bench

    write(as_json, run_bench(load(), pairs))


def main() -> None:
    """Run a command; what a person can correct is said in one line instead of a traceback."""
    from models.forecast.series import SeriesError
    from models.twin.sim.job import TwinError
    from pipelines.airflow.rest import OrchestratorError
    from pipelines.demo.live import RingError
    from pipelines.kafka.broker import BrokerError
    from pipelines.lake.tables import LakeError
    from pipelines.registry import RegistryError
    from pipelines.report.lines import RunError
    from pipelines.serve.client import ClientError
    from pipelines.serve.socket_server import SocketError
    from pipelines.spark.jars import JarsError
    from pipelines.spark.java import JavaError
    from pipelines.stack.place import StackError
    from pipelines.stack.ports import PortError
    from pipelines.stack.processes import ProcessError
    from pipelines.store import StoreError
    from pipelines.traces.trace_file import TraceError

    correctable = (
        *(SettingsError, SeriesError, BrokerError, TraceError, RunError, RingError, JarsError, JavaError),
        *(OrchestratorError, RegistryError, StackError, PortError, ProcessError, TwinError, LakeError),
        *(ClientError, SocketError, StoreError),
    )
    try:
        app(standalone_mode=True)
    except correctable as error:
        print(f"tidecast: {error}", file=sys.stderr)
        raise SystemExit(2) from None
