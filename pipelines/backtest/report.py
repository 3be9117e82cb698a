"""A backtest of traces, and what it came to as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from models.twin.experiment.benchmark import BenchmarkCase, Effort, judged, listened
from models.twin.experiment.contenders import DEFAULTS, LAST_VALUE, OURS, TRUE_FUTURE, UNFORECAST, ablations, contenders
from models.twin.experiment.results import ALLOWED, BOUND, TraceResult, plain
from models.twin.experiment.setup import Setup
from pipelines.backtest.load import NamedLoad


def backtest(
    traces: Sequence[NamedLoad], setup: Setup, names: Iterable[str] = ("all",), effort: Effort | None = None,
    learned: dict[str, Any] | None = None, tell: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Replay every trace under every policy, and return the `figures` of each trace.

    Raises:
        SettingsError: an unknown policy, or one asked for by name that cannot be built.
        TwinError: a trace does not do.
    """
    found, left_out = contenders(names, setup.contract, learned, setup.own is not None)
    everyone = [*found, *ablations(found)]
    cases = [BenchmarkCase(one.name, one.series, listened(one.name, one.series, setup)) for one in traces]
    tell("forecasts are made")
    results = judged(cases, setup, everyone, effort or Effort(), tell)
    return [figures(trace, result, left_out) for trace, result in zip(traces, results, strict=True)]


def figures(trace: NamedLoad, result: TraceResult, left_out: dict[str, str]) -> dict[str, Any]:
    """One trace's backtest as JSON values; null where a policy never keeps the promise."""
    names = [name for name in result.sheets if ":" not in name or name in UNFORECAST]
    ours = [name for name in OURS if name in names]
    cheapest = {f"{a:g}": {name: result.hours_at(name, a) for name in names} for a in ALLOWED}
    for allowed, hours in result.bound.items():
        cheapest[f"{allowed:g}"][BOUND] = hours
    scenario = result.scenario
    setup, job, warm_s = scenario.setup, scenario.setup.the_job, scenario.warm_s
    found = {
        "trace": trace.name, "unit": trace.unit, "step_s": trace.series.step_s, "lead_s": setup.lead_s,
        "engine": "restart" if job.restart_s else "spark", "latency_target_s": job.latency_target_s,
        "executors": {"least": job.least, "most": job.most, "at_peak": setup.peak_executors},
        "test": {
            "begins": scenario.begins_s + warm_s, "seconds": scenario.seconds - warm_s,
            "mean_rps": float(scenario.rate[warm_s:].mean()),
        },
        "seeds": scenario.seeds,
        "policies": {name: result.points(name) for name in names},
        "cheapest_at_violation": cheapest,
        "between": {f"{a:g}": {name: result.between(name, a) for name in names} for a in ALLOWED},
        "ablation": {name: _ablation(result, name) for name in ours if f"{name}:{LAST_VALUE}" in result.sheets},
        "as_shipped": {name: said for name in DEFAULTS if name in names and (said := result.shipped(name, ours))},
        "settings": {name: _setting(result, name) for name in names if name in result.settings},
        "left_out": left_out,
    }  # fmt: skip
    return dict(plain(found))


def _ablation(result: TraceResult, name: str) -> dict[str, dict[str, float]]:
    """By violation: hours of one of our planners without a forecast, with the last value, ours, the true future."""
    none, known = ("reactive", TRUE_FUTURE) if name == "forecast" else (f"{name}:none", f"{name}:truth")
    heard = {"no_forecast": none, LAST_VALUE: f"{name}:{LAST_VALUE}", "ours": name, TRUE_FUTURE: known}
    there = {ear: one for ear, one in heard.items() if one in result.sheets}
    return {f"{a:g}": {ear: result.hours_at(one, a) for ear, one in there.items()} for a in ALLOWED}


def _setting(result: TraceResult, name: str) -> dict[str, float]:
    setting = result.settings[name]
    found = dict(setting.fields)
    return found if setting.level is None else found | {"quantile": setting.level, "memory_steps": setting.memory_steps}
