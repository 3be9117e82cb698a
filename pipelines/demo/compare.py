"""`tidecast compare`: policies in turn on the same trace, on a fresh broker and cluster each, every run reported."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.policies import LEARNED, POLICIES
from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.champion import DemoError, train_first_agent, train_first_champion
from pipelines.demo.live import LiveReplay, wait_for_forecast, write_run_json
from pipelines.demo.own_contracts import with_contract
from pipelines.demo.progress import Screen
from pipelines.demo.run import create_run_dir, running_stack, update_run_json
from pipelines.html.columns import of_rows
from pipelines.jobs.history import publish_history
from pipelines.kafka.broker import Follower
from pipelines.report.comparison import medians_by_contestant, render_comparison
from pipelines.report.recorded.lines import RunError, json_object
from pipelines.report.summary import write_summary
from pipelines.traces.trace import load_past_trace

STAGES = 4  # of a run; the training has one more where an agent is needed
BUSY = "while True: pass"  # what keeps a core busy
_UNUSED = ("withheld_share", "backfill_after_s", "newcomer")  # of `replay`: the runs have live load alone


class Contestant(NamedTuple):
    """A policy that is run, and for `static` how many executors it keeps (None: as the contract says)."""

    policy: str
    executors: int | None = None

    @property
    def name(self) -> str:
        """The policy, or for a number of executors `static:4`."""
        return self.policy if self.executors is None else f"{self.policy}:{self.executors}"

    @property
    def contract(self) -> dict[str, dict[str, int]]:
        """What it changes of the contract, by section; a fixed number is there before the load, as in operation."""
        if self.executors is None:
            return {}
        return {"planning": {"static_executors": self.executors}, "executors": {"min": self.executors}}


class Conditions(NamedTuple):
    """What runs of a comparison have in common: champion's version, cores that something else keeps busy, and trace."""

    version: str
    busy_cores: int
    trace: str


def read_contestants(names: Sequence[str], settings: Settings) -> list[Contestant]:
    """Read the names of policies, or of fixed numbers of executors as in `static:4`.

    Raises:
        SettingsError: an unknown policy, a number for another one than `static`, or one beyond the contract's bounds.
    """
    found, bounds = [], load_contract(settings.job.name, settings.contracts_dir).executors
    for name in names:
        policy, colon, number = name.partition(":")
        if policy not in POLICIES:
            raise SettingsError(f"policy {policy!r} is unknown; choose among {', '.join(POLICIES)}.")
        if colon and (policy != "static" or not number.isdecimal() or not bounds.min <= int(number) <= bounds.max):
            allowed = f"static:{bounds.min} to static:{bounds.max}"
            raise SettingsError(f"{name!r}: only `static` takes a number of executors, here {allowed}.")
        found.append(Contestant(policy, int(number) if colon else None))
    return found


def compare_policies(
    settings: Settings, names: Sequence[str], turns: int, busy_cores: int = 0, since: str = ""
) -> dict[str, Any]:
    """Run each policy live `turns` times on the same trace, and write a page that compares them.

    Every run has a fresh broker and cluster in `var/demo` and keeps its folder under `var/runs`; the forecaster is
    trained once, on the history. All go by the job's contract (YAML of latency target and executor bounds) as it is, so
    the promise steers those that it can steer. Blocks for all runs, minutes each.

    Args:
        settings: which load and job; services of a person's own may not be named, a Spark master apart.
        names: policies as in `read_contestants`, in the order of their turns; every second turn is in reverse.
        turns: at least 1.
        busy_cores: cores that something else keeps busy during each run.
        since: name of a run under `var/runs`: it and later ones of this comparison, that is of this load and as many
            busy cores, are shown with the others and not run again, whatever their policy. Those of this trace whose
            load differs, as by its length, are named as left out.

    Returns:
        `runs` (a row of text and numbers each, by turn), `medians` (by contestant: `late_share`, `executor_s`, `kept`,
        in how many of its `runs` the promise was, `kept_share` and `assured_share`), `page` (path, text), `text` (table
        of the runs).

    Raises:
        SettingsError: a wrong name or contract, no run `since`, or a service of one's own.
        TraceError: the trace cannot be used.
        DemoError: there is no history to train on, or a run did not get through.
        StackError, PortError, JavaError, JarsError, ProcessError: the stack does not start.
        OrchestratorError, BrokerError, RegistryError, kafka.errors.KafkaError: a service failed.
        RunError, EventLogError, OSError: a file of a run is missing or broken, or another cannot be read or written.
    """
    contestants = read_contestants(names, settings)
    load_past_trace(settings.replay)
    screen, trace = Screen(), settings.replay.trace
    known = {(run["turn"], run["contestant"]): run for run in _done(settings, since, busy_cores)}
    order = [(turn + 1, one) for turn in range(turns) for one in contestants[:: -1 if turn % 2 else 1]]
    left = [(turn, one) for turn, one in order if (turn, one.name) not in known]
    if left:
        learned = any(one.policy in LEARNED for _, one in left)
        conditions = Conditions(_train(settings, screen, learned), busy_cores, trace)
        for turn, one in left:
            known[turn, one.name] = _once(settings, one, turn, conditions, screen)
    runs = sorted(known.values(), key=lambda run: run["turn"])
    medians = medians_by_contestant(runs)[
        ["late_share", "executor_s", "kept", "runs", "kept_share", "assured_share"]
    ].to_dict("index")
    page = render_comparison(runs, settings.var_dir / "runs" / f"compare-{int(time.time())}.html")
    rows = [_row(run) for run in runs]
    middle = [{**dict.fromkeys(rows[0]), **median} for median in _medians(medians)]
    said = "\n".join([*of_rows([*rows, *middle]), f"page: {page}"])
    return {"runs": rows, "medians": medians, "page": str(page), "text": said}


def _done(settings: Settings, since: str, busy_cores: int) -> list[dict[str, Any]]:
    """Summaries of the finished runs of this comparison; one that cannot be read, or of another load, is said."""
    kept = settings.var_dir / "runs"
    if since and not (kept / since).is_dir():
        raise SettingsError(f"--since {since}: no such run in {kept}; name the first run of the comparison.")
    folders = sorted(kept.glob("*/summary.json")) if since else []
    found = []
    for path in folders:
        if path.parent.name < since:
            continue
        try:
            known, summary = json_object(path.parent / "run.json"), json_object(path)
        except RunError as error:
            print(f"{error}. That run is left out")
            continue
        of = known.get("comparison")
        if of is None or (of["busy_cores"], of.get("trace")) != (busy_cores, settings.replay.trace):
            continue
        if other := _other_load(known.get("replay", {}), settings):
            print(f"{path.parent.name}: {other}. That run is left out")
            continue
        found.append({**summary, **of})
    return found


def _other_load(replayed: dict[str, Any], settings: Settings) -> str:
    """In which settings, of those that both know, the load of a run differs from the one of now; empty: in none."""
    now = settings.replay.model_dump(mode="json", exclude=set(_UNUSED))
    other = [name for name in now if name in replayed and replayed[name] != now[name]]
    return ", ".join(f"replay.{name} was {replayed[name]} and is {now[name]}" for name in other)


def _train(settings: Settings, screen: Screen, agent: bool) -> str:
    """History through the DAGs once, and an agent if one is needed; returns the forecasting champion's version."""
    with running_stack(settings, {"broker", "spark", "airflow", "mlflow"}, screen, STAGES + agent) as stack:
        dags = Orchestrator(stack.settings)
        version = train_first_champion(stack.settings, dags, screen)
        if agent and version is not None:
            train_first_agent(stack.settings, dags, screen)
    if version is None:
        raise DemoError("a comparison needs a champion, which is trained on history: raise replay.history_days")
    return version


def _once(settings: Settings, one: Contestant, turn: int, conditions: Conditions, screen: Screen) -> dict[str, Any]:
    """One live run; its summary, and which run of the comparison it was."""
    policy = settings.autoscaler.model_copy(update={"policy": one.policy})
    alone = settings.replay.model_copy(update={"withheld_share": 0.0})  # of live load alone
    chosen = settings.model_copy(update={"autoscaler": policy, "replay": alone})
    run_dir = create_run_dir(chosen)
    if one.contract:
        chosen = with_contract(chosen, run_dir, one.contract)
    with running_stack(chosen, {"broker", "spark", "mlflow"}, screen, STAGES, kept={"mlflow", "lake"}) as stack:
        here = stack.settings
        with screen.stage(f"turn {turn}: {one.name}: start"):
            publish_history(here)
            with closing(Follower(here.kafka, ["forecasts"])) as forecasts:
                serving = stack.spawn("serving", [sys.executable, "-m", "tidecast", "serve"])
                live = LiveReplay(stack, here, run_dir, screen)
                write_run_json(here, run_dir, live.began, {"champion": conditions.version})
                live.start()
                wait_for_forecast(forecasts, serving.log)
        with screen.stage(f"turn {turn}: {one.name}: live"):
            for core in range(conditions.busy_cores):
                stack.spawn(f"busy-{core}", [sys.executable, "-c", BUSY])
            live.replay()
            live.stop()
    of = {"turn": turn, "contestant": one.name, "busy_cores": conditions.busy_cores, "trace": conditions.trace}
    update_run_json(run_dir, **live.use.facts(), comparison=of)
    summary = write_summary(run_dir)
    late = summary["promise"]["late_share"]
    screen.note(f"late {late:.1%} of the seconds, executor-seconds {summary['executor_s']:.0f}")
    return {**summary, **of}


def _row(run: dict[str, Any]) -> dict[str, Any]:
    latency = run["latency_s"]
    return {
        "turn": str(run["turn"]), "policy": run["contestant"], "kept": "yes" if run["promise"]["kept"] else "no",
        "late": f"{run['promise']['late_share']:.1%}", "executor-seconds": f"{run['executor_s']:.0f}",
        "latency p50 / p95 / slowest, s": " / ".join(f"{latency[name]:.1f}" for name in ("p50", "p95", "max")),
        "raises": str(run["scale_ups"]), "stopped s": str(run["stopped_s"]), "lost": str(run["lost"]),
    }  # fmt: skip


def _medians(medians: dict[Any, dict[Any, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "turn": "median", "policy": str(name), "kept": f"{m['kept']:.0f} of {m['runs']:.0f}",
            "late": f"{m['late_share']:.1%}", "executor-seconds": f"{m['executor_s']:.0f}",
        }
        for name, m in medians.items()
    ]  # fmt: skip
