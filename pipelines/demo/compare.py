"""`tidecast compare`: policies in turn on the same trace, on a fresh broker and cluster each, every run reported."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import yaml

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.policies import LEARNED, POLICIES
from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.champion import DemoError, train_first_agent, train_first_champion
from pipelines.demo.live import LiveReplay, wait_for_forecast, write_run_json
from pipelines.demo.progress import Screen
from pipelines.demo.run import create_run_dir, running_stack, update_run_json
from pipelines.html.columns import of_rows
from pipelines.jobs.history import publish_history
from pipelines.kafka.broker import Follower
from pipelines.report.comparison import SWEEP, medians_by_policy, render_comparison
from pipelines.report.summary import write_summary
from pipelines.traces.trace import load_trace

STAGES = 4  # of a run; the training has one more where an agent is needed


def compare_policies(settings: Settings, policies: list[str], pairs: int, utilisations: list[float]) -> dict[str, Any]:
    """Run each policy live `pairs` times on the same trace, in turn, and write a page that compares them.

    Every run has a fresh broker and cluster in `var/demo` and keeps its folder under `var/runs`; the forecaster is
    trained once, on the history. With `utilisations`, each is tried once per policy first, and the pairs use that of
    the `cheapest_run`, a second over the latency target priced as a second of the most executors that the job's
    contract (YAML of latency target and executor bounds) allows. Without, the contract's is used. Blocks for all runs,
    minutes each.

    Args:
        settings: which load and job; services of a person's own may not be named, a Spark master apart.
        policies: names out of `POLICIES`, in the order of their turns; every second turn is in reverse.
        pairs: turns, at least 1.
        utilisations: target utilisations (busy share of the capacity) to try, in (0, 1]; may be empty.

    Returns:
        `runs` (the `summary.json` of each, trials included, with `turn`, text, and `target_utilisation`), `best`
        (utilisation by policy), `medians` (by policy, `over_target_s`, seconds, and `executor_s`, executor-seconds,
        without the trials), `page` (path, text), `text` (table of the runs).

    Raises:
        SettingsError: an unknown policy, a utilisation outside (0, 1], a wrong contract or a service of one's own.
        TraceError: the trace cannot be used.
        DemoError: there is no history to train on, or a run did not get through.
        StackError, PortError, JavaError, JarsError, ProcessError: the stack does not start.
        OrchestratorError, BrokerError, RegistryError, kafka.errors.KafkaError: a service failed.
        RunError, EventLogError, OSError: a file of a run is missing or broken, or another cannot be read or written.
        KeyError: no policies, or neither turns nor utilisations.
    """
    _check(policies, utilisations)
    load_trace(settings.replay)
    screen = Screen()
    version = _train(settings, screen, not set(policies).isdisjoint(LEARNED))
    runs: list[dict[str, Any]] = []
    contract = load_contract(settings.job.name, settings.contracts_dir)
    best = dict.fromkeys(policies, contract.planning.utilisation)
    for policy in policies:
        tried = [_once(settings, policy, u, version, screen, SWEEP) for u in utilisations]
        runs += tried
        if tried:
            best[policy] = cheapest_run(tried, contract.executors.max)["target_utilisation"]
    for pair in range(pairs):
        order = policies if pair % 2 == 0 else policies[::-1]  # so that neither always runs on the warmer machine
        runs += [_once(settings, policy, best[policy], version, screen, f"pair {pair + 1}") for policy in order]
    figures = medians_by_policy(runs).loc[policies, ["over_target_s", "executor_s"]].to_dict("index")
    page = render_comparison(runs, settings.var_dir / "runs" / f"compare-{int(time.time())}.html")
    said = "\n".join([*_lines(runs, figures, best), f"page: {page}"])
    return {"runs": runs, "best": best, "medians": figures, "page": str(page), "text": said}


def cheapest_run(runs: list[dict[str, Any]], price: float) -> dict[str, Any]:
    """Return the run with the lowest `executor_s + price * over_target_s`; the first of equals.

    Args:
        runs: summaries.
        price: executor-seconds that a second over the latency target counts as.

    Raises:
        ValueError: there are no runs.
    """
    return min(runs, key=lambda r: r["executor_s"] + price * r["over_target_s"])


def _check(policies: list[str], utilisations: list[float]) -> None:
    if unknown := [p for p in policies if p not in POLICIES]:
        raise SettingsError(f"policy {unknown[0]!r} is unknown; choose among {', '.join(POLICIES)}.")
    if wrong := [u for u in utilisations if not 0 < u <= 1]:
        raise SettingsError(f"target utilisation {wrong[0]}: above 0 and at most 1 is expected.")


def _train(settings: Settings, screen: Screen, agent: bool) -> str:
    """History through the DAGs once, and an agent if one is needed; returns the forecasting champion's version."""
    with running_stack(settings, {"broker", "spark", "airflow", "mlflow"}, screen, STAGES + agent) as stack:
        dags = Orchestrator(stack.settings)
        version = train_first_champion(stack.settings, dags, screen)
        if agent and version is not None:
            train_first_agent(stack.settings, dags, screen)
    if version is None:
        raise DemoError("policies are compared with a champion, and without history there is none; raise history_days")
    return version


def _once(
    settings: Settings, policy: str, utilisation: float, version: str, screen: Screen, turn: str
) -> dict[str, Any]:
    """One live run; its summary with the turn and the utilisation."""
    chosen = settings.model_copy(update={"autoscaler": settings.autoscaler.model_copy(update={"policy": policy})})
    run_dir = create_run_dir(chosen)
    contracts = _contracts(chosen, run_dir, utilisation)
    chosen = chosen.model_copy(update={"contracts": contracts})
    with running_stack(chosen, {"broker", "spark", "mlflow"}, screen, STAGES, kept={"mlflow", "lake"}) as stack:
        here = stack.settings
        with screen.stage(f"{turn}: {policy} at utilisation {utilisation:g}: start"):
            publish_history(here)
            forecasts = Follower(here.kafka, ["forecasts"])
            stack.spawn("serving", [sys.executable, "-m", "tidecast", "serve"])
            live = LiveReplay(stack, here, run_dir, screen)
            write_run_json(here, run_dir, live.began, {"champion": version})
            live.start()
            wait_for_forecast(forecasts)
        with screen.stage(f"{turn}: {policy} at utilisation {utilisation:g}: live"):
            live.replay()
            live.stop()
    update_run_json(run_dir, peak_memory_mb=live.peak_mb())
    summary = write_summary(run_dir)
    screen.note(f"over target {summary['over_target_s']} s, executor-seconds {summary['executor_s']:.0f}")
    return {**summary, "turn": turn, "target_utilisation": utilisation}


def _contracts(settings: Settings, run_dir: Path, utilisation: float) -> Path:
    """The contracts of this run: as they are, with the job's target utilisation changed."""
    folder = run_dir / "contracts"
    folder.mkdir()
    for path in settings.contracts_dir.glob("*.yaml"):
        data = yaml.safe_load(path.read_text())
        if path.stem == settings.job.name:
            data.setdefault("planning", {})["target_utilisation"] = utilisation
        (folder / path.name).write_text(yaml.safe_dump(data))
    return folder


def _lines(runs: list[dict[str, Any]], middle: dict[str, dict[str, float]], best: dict[str, float]) -> list[str]:
    rows = [
        {
            "turn": r["turn"], "policy": r["policy"], "util": f"{r['target_utilisation']:.2f}",
            "over target s": f"{r['over_target_s']:.0f}", "executor s": f"{r['executor_s']:.0f}",
            "scale ups": r.get("scale_ups"), "lost": r.get("lost"),
        }
        for r in [
            *runs,
            *({"turn": "median", "policy": p, "target_utilisation": best[p], **m} for p, m in middle.items()),
        ]
    ]  # fmt: skip
    return of_rows(rows)
