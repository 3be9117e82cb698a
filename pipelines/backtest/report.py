"""A backtest of traces, and what it came to as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from models.twin.experiment.benchmark import Effort
from models.twin.experiment.contenders import (
    DEFAULTS,
    LAST_VALUE,
    OURS,
    TRUE_FUTURE,
    UNFORECAST,
    ablations,
    select_contenders,
)
from models.twin.experiment.results import ALLOWED, BOUND, TraceResult, to_json_values
from models.twin.experiment.scenario import split_trace
from models.twin.experiment.setup import Setup
from pipelines.backtest.in_parts import run_in_parts
from pipelines.backtest.load import NamedLoad


def backtest(
    traces: Sequence[NamedLoad], setup: Setup, names: Iterable[str] = ("all",), effort: Effort | None = None,
    learned: dict[str, Any] | None = None, processes: int = 1,
    report_share: Callable[[float], None] = lambda share: None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Replay every trace under every policy in the job's twin (simulator); takes seconds to minutes per trace.

    A policy's hyper-parameters are chosen on the part of the trace before the test.

    Args:
        traces: loads.
        setup: the job and its clock.
        names: of policies; "all" for every one that can be built.
        effort: numbers of values of each policy's tuned parameter and of seeds, and whether the optimum is computed;
            None for 8, 4 and yes.
        learned: DQN policies or timetables, by policy.
        processes: that it is computed in; more of them end with it.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        What `backtest_to_json` returns, per trace, in their order.

    Raises:
        SettingsError: an unknown policy, or one asked for by name that cannot be built.
        TwinError: a trace is too short, has gaps or negative rates, or cannot be scaled to the job.
        SeriesError: a rate is infinite.
        BrokenProcessPool: a worker died.
    """
    selected, left_out = select_contenders(names, setup.contract, learned, setup.contract_of_job is not None)
    everyone = [*selected, *ablations(selected)]
    for one in traces:
        split_trace(one.name, one.series, setup)
    results = run_in_parts(traces, setup, everyone, effort or Effort(), processes, report_share)
    return [backtest_to_json(trace, result, left_out) for trace, result in zip(traces, results, strict=True)]


def backtest_to_json(trace: NamedLoad, result: TraceResult, left_out: dict[str, str]) -> dict[str, Any]:
    """Convert one trace's backtest to JSON values, None for every number that is not finite.

    Args:
        trace: the load.
        result: of its replay.
        left_out: why policies did not take part, by name.

    Returns:
        What was replayed: `trace`, `unit`, `step_s`, `lead_s`, `engine` ("restart" or "spark"), `latency_target_s`,
        `executors` (`least`, `most`, and `at_peak`, how many process the load's 99.9 % quantile, `peak_rps` in
        records/s, without a backlog; None: not even `most`), `test` (`begins`, `seconds`, `mean_rps`), `seeds`; by
        policy `policies` (list of `TraceResult.points`, one per value of its tuned parameter) and `settings`
        (hyper-parameters). By allowed violation ("0.001", "0.01", "0.05": share of seconds over the latency target) and
        policy, in executor-hours, means over the seeds: `cheapest_at_violation` (None where the policy never keeps it;
        also "bound", which no policy can go below) and `between` ([lowest, highest] seed). `ablation`: by planner of
        ours, violation and forecast used, the hours. `as_shipped`: by policy, its usual setting and what ours take at
        the same violation, see `TraceResult.at_usual_setting`. `left_out`.
    """
    names = [name for name in result.results if ":" not in name or name in UNFORECAST]
    ours = [name for name in OURS if name in names]
    cheapest = {f"{a:g}": {name: result.hours_at(name, a) for name in names} for a in ALLOWED}
    for allowed, hours in result.bound.items():
        cheapest[f"{allowed:g}"][BOUND] = hours
    scenario = result.scenario
    setup, job, warm_s = scenario.setup, scenario.setup.twin_job, scenario.warm_s
    figures = {
        "trace": trace.name, "unit": trace.unit, "step_s": trace.series.step_s, "lead_s": setup.lead_s,
        "engine": "restart" if job.restart_s else "spark", "latency_target_s": job.latency_target_s,
        "executors": {"least": job.least, "most": job.most, "at_peak": setup.executors_at_peak(trace.series)},
        "peak_rps": setup.peak_rps(trace.series),
        "test": {
            "begins": scenario.begins_s + warm_s, "seconds": scenario.seconds - warm_s,
            "mean_rps": float(scenario.rate[warm_s:].mean()),
        },
        "seeds": scenario.seeds,
        "policies": {name: result.points(name) for name in names},
        "cheapest_at_violation": cheapest,
        "between": {f"{a:g}": {name: result.between(name, a) for name in names} for a in ALLOWED},
        "ablation": {name: _ablation(result, name) for name in ours if f"{name}:{LAST_VALUE}" in result.results},
        "as_shipped": {
            name: said for name in DEFAULTS if name in names and (said := result.at_usual_setting(name, ours))
        },
        "settings": {name: _setting(result, name) for name in names if name in result.settings},
        "left_out": left_out,
    }  # fmt: skip
    return dict(to_json_values(figures))


def _ablation(result: TraceResult, name: str) -> dict[str, dict[str, float]]:
    """By violation: hours of one of our planners without a forecast, with the last value, ours, the true future."""
    none, known = ("reactive", TRUE_FUTURE) if name == "forecast" else (f"{name}:none", f"{name}:truth")
    heard = {"no_forecast": none, LAST_VALUE: f"{name}:{LAST_VALUE}", "ours": name, TRUE_FUTURE: known}
    there = {ear: one for ear, one in heard.items() if one in result.results}
    return {f"{a:g}": {ear: result.hours_at(one, a) for ear, one in there.items()} for a in ALLOWED}


def _setting(result: TraceResult, name: str) -> dict[str, float]:
    setting = result.settings[name]
    found = dict(setting.fields)
    return found if setting.level is None else found | {"quantile": setting.level, "memory_steps": setting.memory_steps}
