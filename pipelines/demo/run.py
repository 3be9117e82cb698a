"""`make run`: the main job from the first history record to the judged challenger, through the DAGs a person uses."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from configs.contract import load_contract
from configs.policies import LEARNED, LISTENERS
from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.demo import newcomer
from pipelines.demo.champion import (
    dag_logs,
    live_window,
    run_ingest,
    switch_learning,
    train_first_agent,
    train_first_champion,
    wait_for_training,
)
from pipelines.demo.live import LiveReplay, wait_for_forecast, write_run_json
from pipelines.demo.own_contracts import with_contract
from pipelines.demo.progress import Screen
from pipelines.demo.slow_computer import fit_run, measure_slowness
from pipelines.kafka.broker import Follower
from pipelines.kafka.topics import create_topics
from pipelines.lake.folder import lake_folder
from pipelines.lake.tables import job_span_s
from pipelines.registry import Registry
from pipelines.report.backfill.text import backfill_failures
from pipelines.report.headline import newcomer_lines
from pipelines.report.page import render_report
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.processes import describe, find_processes
from pipelines.stack.stack import Stack
from pipelines.traces.trace import load_past_trace

_PARSED_ONCE = {
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "86400",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "86400",
}
"""No DAG comes or changes in a run, and all of them parsed anew are seconds of both cores in the middle of the load."""
STAGES = 7
"""Stages that a run shows; one more where the policy needs an agent."""


def run_demo(settings: Settings) -> tuple[dict[str, Any], Path, list[str]]:
    """Run the main job from history to judged challenger on an embedded stack in `var/demo`, and report it.

    History, training, serving, a live load under the autoscaler, a second training; writes the run's folder under
    `var/runs`, report included, and blocks for minutes until all is stopped. `running_stack` says what is deleted.

    Returns:
        The summary (keys in `pipelines.report.summary.KEYS`), the path of the HTML report, and in words what went
        wrong, such as lost records (empty: nothing).

    Raises:
        TraceError, SeriesError, SettingsError: a wrong trace, contract or setting; told before anything is started.
        StackError, PortError, JavaError, JarsError, ProcessError: the stack does not start.
        DemoError: a stage did not get through.
        OrchestratorError, BrokerError, RegistryError, kafka.errors.KafkaError: a service failed.
        RunError, EventLogError, OSError: a file of the run is missing or broken, or another cannot be read or written.
    """
    screen, of = Screen(), STAGES + (settings.autoscaler.policy in LEARNED)
    isolated_settings(settings, "demo")  # what is wrong is told before anything is started, or a folder made
    load_past_trace(settings.replay)
    main, *_ = [load_contract(job, settings.contracts_dir) for job in settings.replayed]
    newcomer.check_newcomer(settings)
    settings, contract, fitted = fit_run(settings, main, measure_slowness())
    began = time.time()
    run_dir = create_run_dir(settings)
    try:
        if fitted:
            settings = with_contract(settings, run_dir, contract)
            screen.note(fitted)
        with running_stack(settings, {"broker", "spark", "airflow", "mlflow"}, screen, of) as stack:
            found = run_stages(stack, run_dir, screen, began)
    except BaseException:
        if not (run_dir / "run.json").exists():  # nothing ran yet, as where a stack runs already
            shutil.rmtree(run_dir, ignore_errors=True)
        raise
    run_facts = update_run_json(run_dir, wall_end=time.time(), left_alive=left_alive(stack), fitted=fitted, **found)
    summary, page = render_report(run_dir)
    return summary, page, list_failures(summary, run_facts)


def left_alive(stack: Stack) -> list[str]:
    """List the processes of a stopped stack that still run, as `PID NAME`: of its sessions, or with its marker."""
    return describe(find_processes([process.pid for process in stack.processes.values()], stack.id))


def list_failures(summary: dict[str, Any], run_facts: dict[str, Any]) -> list[str]:
    """Say in words what went wrong in a run: one sentence each, an empty list if nothing did.

    Looks for records lost or counted twice, a backfill that was not done or left wrong results, live metrics
    that are not in the lake, models that were not judged, processes still alive, and, under a policy that uses a
    forecast, for at least one scale-up that the forecast caused and a batch used.

    Args:
        summary: of `render_report`.
        run_facts: content of `run.json`, `left_alive` included.

    Raises:
        KeyError: `summary` or `run_facts` lacks an entry.
    """
    new = run_facts.get("newcomer") or {"version": "none is expected"}
    unconfirmed = run_facts["policy"] in LISTENERS and not summary["forecast_scale_ups_confirmed"]
    ends = {
        f"counts differ: produced {summary['produced']}, counted {summary['counted']}": (
            summary["lost"] or summary["duplicated"] or summary["produced"] != summary["counted"]
        ),
        "no scale-up that the forecast caused was confirmed by an outcome": unconfirmed,
        "the live metrics are not in the lake": not run_facts.get("live_ingested_s"),
        "no challenger was judged": not run_facts.get("challenger"),
        f"no model of the newcomer {new.get('job')} was judged: {new.get('reason')}": not new["version"],
        f"still alive: {', '.join(run_facts['left_alive'])}": run_facts["left_alive"],
    }
    return [*backfill_failures(summary.get("backfill")), *(end for end, open_ in ends.items() if open_)]


def create_run_dir(settings: Settings) -> Path:
    """Create `var/runs/YYYYMMDD-HHMMSS-POLICY` (UTC) and return its path.

    Raises:
        OSError: it cannot be created; as FileExistsError, a run of the policy began in this second.
    """
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{settings.autoscaler.policy}"
    folder = settings.var_dir / "runs" / name
    folder.mkdir(parents=True)
    return folder


@contextmanager
def running_stack(
    settings: Settings, parts: set[str], screen: Screen, of: int, kept: Collection[str] = ()
) -> Iterator[Stack]:
    """Context manager: an embedded stack in `var/demo` with all topics created; everything is stopped at the end.

    Deletes first, but for `kept`, what the parts left there and the lake, and always the fast path's store (LMDB).

    Args:
        settings: without addresses of a person's own, a Spark master apart.
        parts: of the stack, e.g. `broker`.
        screen: shows start and end as the first and the last stage.
        of: number of stages, these two included.
        kept: parts that keep their state, and "lake" for the lake.

    Raises:
        SettingsError: the address of a broker, Airflow or MLflow is set.
        StackError, PortError, JavaError, JarsError, ProcessError, OSError: the stack does not start.
        BrokerError, kafka.errors.KafkaError: the topics cannot be created.
        subprocess.TimeoutExpired: at the end, a process still runs 10 s after SIGKILL.
    """
    settings, screen.total = isolated_settings(settings, "demo"), of
    stack = Stack(settings, parts, fresh=parts - set(kept), given=_PARSED_ONCE)
    try:
        with screen.stage(f"start {', '.join(sorted(parts))}"):
            if "lake" not in kept:  # its recorded offsets are the old broker's
                shutil.rmtree(settings.lake_address, ignore_errors=True)
            shutil.rmtree(settings.store_dir, ignore_errors=True)  # it follows the old broker's topics
            stack.start(lambda part, seconds: screen.note(f"{part} is up after {seconds:.0f} s"))
            create_topics(stack.settings.kafka)
        yield stack
    finally:
        with screen.stage("stop everything", last=True):
            stack.stop()


def run_stages(stack: Stack, run_dir: Path, screen: Screen, began: float) -> dict[str, Any]:
    """Run every stage between start and end of the stack: history, training, serving, live load, second training.

    Args:
        stack: started, with its topics.
        run_dir: folder of the run; `run.json`, `counts.json` and the records of the run are written there.
        screen: shows the stages.
        began: epoch seconds at which the run began.

    Returns:
        Entries for `run.json`: `challenger` (verdict on the model trained on history and live load: `version`,
        `promoted`, `reason`, and losses in records/s; None: none was judged), `newcomer` (of
        `collect_newcomer_results`), `live_ingested_s` (job seconds of load), and those of `ComputerUse.facts`.

    Raises:
        DemoError: a stage did not get through.
        OrchestratorError, BrokerError, RegistryError: a service failed.
        TraceError, SeriesError, SettingsError: a trace or contract cannot be used.
        ProcessError, subprocess.TimeoutExpired: a process cannot be started, or does not end.
        OSError, ValueError: a file of the run or the lake's log cannot be read or written.
    """
    settings, dags, registry = stack.settings, Orchestrator(stack.settings), Registry(stack.settings)
    live = LiveReplay(stack, settings, run_dir, screen, began)
    versions = {"champion": train_first_champion(settings, dags, screen, live.start_autoscaler) or "none"}
    if settings.autoscaler.policy in LEARNED:
        versions["agent"] = train_first_agent(settings, dags, screen) or "none"
    history_s = job_span_s(lake_folder(settings), settings.job.name)
    with screen.stage("start serving DAG, managed job and autoscaler"):
        write_run_json(settings, run_dir, began, versions)
        with closing(Follower(settings.kafka, ["forecasts"])) as forecasts:
            dags.unpause("serve_forecasts")
            live.start()
            if versions["champion"] != "none":
                wait_for_forecast(forecasts, dag_logs(settings, "serve_forecasts"))
    with screen.stage(f"live: {settings.replay.live_hours:g} h of the trace, {settings.replay.speed:g} times faster"):
        live.replay()
        counts = live.stop()
        screen.note(f"produced {counts['produced']}, counted {counts['counted']}")
        dags.pause("serve_forecasts")
        dags.end_runs("serve_forecasts")  # the end of Airflow would wait for it, 8 s
    with screen.stage("live metrics into the lake; a challenger is trained on history and live day, and judged"):
        learned = _learn_from_live_day(settings, dags, registry, screen)
    live_s = job_span_s(lake_folder(settings), settings.job.name) - history_s
    return {**learned, "live_ingested_s": live_s, **live.use.facts()}


def _learn_from_live_day(settings: Settings, dags: Orchestrator, registry: Registry, screen: Screen) -> dict[str, Any]:
    """Ingest the live metrics and the newcomer's history and wait for the retrain DAG; entries for `run.json`."""
    newcomer.publish_newcomer_history(settings, screen)
    switch_learning(dags, on=True)  # an hour of the clock that has passed starts at once, and takes all that is there
    earlier = registry.read_verdict(settings.job.name)
    run_ingest(dags, *live_window(settings))
    wait_for_training(settings, dags)
    verdict = registry.read_verdict(settings.job.name)
    if verdict == earlier:
        verdict = None  # of the first champion: this time too little data made the DAG skip
    screen.note(f"challenger: {verdict['reason']}" if verdict else "no challenger was judged")
    results = newcomer.collect_newcomer_results(settings, registry)
    for label, text in newcomer_lines(results):
        screen.note(f"{label}: {text}")
    return {"challenger": verdict, "newcomer": results}


def update_run_json(run_dir: Path, **more: Any) -> dict[str, Any]:
    """Add entries to a run's `run.json`, replacing those of the same name; returns its whole content.

    Raises:
        OSError: there is no such file, or it cannot be read or written.
        ValueError: it is not JSON.
        TypeError: it is no JSON object, or an entry cannot be written as JSON.
    """
    file = run_dir / "run.json"
    known = {**json.loads(file.read_text()), **more}
    file.write_text(json.dumps(known, indent=1))
    return known
