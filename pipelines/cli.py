"""`tidecast`: the front door. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from configs.errors import SettingsError
from configs.policies import POLICIES
from configs.settings import Settings, load
from pipelines.commands.adapt import app as adapt_app
from pipelines.commands.backtest import backtest
from pipelines.commands.bench_dqn import bench as bench_dqn
from pipelines.commands.bench_twin import bench as bench_twin
from pipelines.commands.drift import app as drift_app
from pipelines.commands.forecast import app as forecast_app
from pipelines.commands.models import app as models_app
from pipelines.commands.twin import app as twin_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecast-driven autoscaling of Spark Structured Streaming.",
)
job_app = typer.Typer(no_args_is_help=True, help="Talk to a running job's agent.")
bench_app = typer.Typer(no_args_is_help=True, help="Measure; every command prints figures and fails on none.")
app.add_typer(job_app, name="job")
app.add_typer(models_app, name="models")
app.add_typer(bench_app, name="bench")
app.add_typer(forecast_app, name="forecast")
app.add_typer(adapt_app, name="adapt")
app.add_typer(drift_app, name="drift")
app.command()(backtest)
app.add_typer(twin_app, name="twin")
bench_app.command("dqn")(bench_dqn)
bench_app.command("twin")(bench_twin)

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


def _settings(**sections: dict[str, Any]) -> Settings:
    """The settings with the options that were given; None means not given."""
    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load(**{name: values for name, values in given.items() if values})


def _write(path: Path | None, data: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(data, indent=1))


@app.command()
def run(
    trace: Annotated[str | None, typer.Option(help="A name in pipelines/jobs/traces, or a CSV file.")] = None,
    speed: Annotated[float | None, typer.Option(help="Trace seconds per wall second.")] = None,
    hours: Annotated[float | None, typer.Option(help="Trace hours replayed live.")] = None,
    live_start: Annotated[str | None, typer.Option(help="Trace time at which the live load begins.")] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
    also: Annotated[list[str] | None, typer.Option(help="A further job beside the main one, e.g. key_window.")] = None,
    airflow_port: Annotated[int | None, typer.Option(help="0 = any free one.")] = None,
    broker_port: Annotated[int | None, typer.Option(help="0 = any free one.")] = None,
    as_json: JsonFile = None,
) -> None:
    """Run the main job: history, training, serving, a live day on real executors, and what was learned from it."""
    settings = _settings(
        replay={"trace": trace, "speed": speed, "live_hours": hours, "live_start": live_start},
        job={"also": also},
        autoscaler={"policy": policy},
        ports={"airflow": airflow_port, "broker": broker_port},
    )
    from pipelines.report.table import table
    from pipelines.ring.run import run as run_ring

    summary, page, open_ends = run_ring(settings)
    print(table(summary))
    print(f"report: {page}")
    _write(as_json, summary)
    if open_ends:
        print("the ring did not close: " + "; ".join(open_ends), file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def compare(
    policies: Annotated[
        list[str], typer.Argument(help="Policies in the order of their turns, e.g. forecast reactive.")
    ],
    pairs: Annotated[int, typer.Option(min=1, help="How many times each policy runs.")] = 3,
    sweep: Annotated[str, typer.Option(help="Target utilisations to try first, once each, e.g. 0.6,0.75,0.9.")] = "",
    hours: Annotated[float | None, typer.Option(help="Trace hours per run.")] = None,
    as_json: JsonFile = None,
) -> None:
    """Run policies in turn on the same trace and report every run."""
    from pipelines.ring.compare import compare as compare_policies

    settings = _settings(replay={"live_hours": hours})
    result = compare_policies(settings, policies, pairs, _numbers("--sweep", sweep))
    print(result["text"])
    _write(as_json, result)


@app.command()
def up() -> None:
    """Start the stack, leave it running, and print its addresses."""
    from pipelines.broker import create_topics
    from pipelines.stack.stack import Stack

    stack = Stack(load(), {"broker", "spark", "airflow", "mlflow_ui"}, fresh=())
    try:
        stack.start(lambda part, seconds: print(f"{part} is up after {seconds:.0f} s", flush=True))
        create_topics(stack.settings.kafka)
    except BaseException:
        stack.stop()
        raise
    stack.detach()
    for name, address in stack.addresses.items():
        print(f"{name:10} {address}")
    print("`make down` (or `tidecast down`) ends it.")


@app.command()
def down() -> None:
    """Stop what `up` left running."""
    from pipelines.stack.stack import down as stack_down

    ended = stack_down(load().var_dir)
    print(f"ended: {', '.join(ended)}" if ended else "nothing was running")


@app.command()
def doctor() -> None:
    """Say what is missing on this computer and how to get it."""
    from pipelines.doctor import checks

    found = checks(load())
    for check in found:
        print(check)
    if not all(check.ok for check in found):
        raise typer.Exit(1)


@app.command()
def report(
    run_dir: Annotated[Path, typer.Argument(help="A run's folder, or its name under var/runs.")],
    compare_with: Annotated[Path | None, typer.Option("--compare", help="Another run to set beside it.")] = None,
) -> None:
    """Write a run's summary and page again."""
    from pipelines.report.page import render
    from pipelines.report.summary import summarise
    from pipelines.report.table import table

    here, other = _run(run_dir), _run(compare_with) if compare_with else None
    print(table(summarise(here)))
    print(f"report: {render(here, other)}")


@app.command()
def serve() -> None:
    """Serve forecasts until stopped; the serving DAG runs the same."""
    from pipelines.serve.server import serve as serve_forever

    serve_forever()


@app.command()
def autoscale(
    checkpoint: Annotated[Path, typer.Option(help="Where the query keeps its state.")] = Path("var/autoscaler"),
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
) -> None:
    """Run the autoscaler query until stopped."""
    from configs.policies import LEARNED
    from pipelines.scale.autoscaler import run as run_autoscaler

    settings, source = _settings(autoscaler={"policy": policy}), None
    if settings.autoscaler.policy in LEARNED:
        from pipelines.scale import dqn

        source = dqn.source(settings)
    run_autoscaler(settings, checkpoint.absolute(), source)


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
    from pipelines.bench_agent import run as run_bench

    _write(as_json, run_bench(load(), pairs))


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part]
    except ValueError:
        raise SettingsError(f"{option} {text!r}: numbers with commas between are expected, as 0.7,0.8.") from None


def _run(path: Path) -> Path:
    if path.is_dir():
        return path
    named = load().var_dir / "runs" / path
    if named.is_dir():
        return named
    known = sorted(p.name for p in named.parent.glob("*") if p.is_dir())
    raise SettingsError(f"{path}: no such run. Runs in {named.parent}: {', '.join(known) or 'none yet'}.")


def main() -> None:
    """Run a command; what a person can correct is said in one line instead of a traceback."""
    from models.forecast.series import SeriesError
    from models.twin.job import TwinError
    from pipelines.broker import BrokerError
    from pipelines.jars import JarsError
    from pipelines.jobs.trace_file import TraceError
    from pipelines.lake import LakeError
    from pipelines.orchestrator import OrchestratorError
    from pipelines.registry import RegistryError
    from pipelines.report.lines import RunError
    from pipelines.ring.live import RingError
    from pipelines.stack.java import JavaError
    from pipelines.stack.place import StackError
    from pipelines.stack.ports import PortError
    from pipelines.stack.processes import ProcessError

    correctable = (
        *(SettingsError, SeriesError, BrokerError, TraceError, RunError, RingError, JarsError, JavaError),
        *(OrchestratorError, RegistryError, StackError, PortError, ProcessError, TwinError, LakeError),
    )
    try:
        app(standalone_mode=True)
    except correctable as error:
        print(f"tidecast: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
