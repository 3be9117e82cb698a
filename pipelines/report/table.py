"""A summary as plain text for the terminal."""

from __future__ import annotations

from pipelines.html.numbers import number, share
from pipelines.report.headline import Summary, counted_exactly, newcomer, verdict


def table(s: Summary) -> str:
    """The run's figures in two aligned columns, under a line that says what they came to."""
    rows = [*_work(s), *_scaling(s), *_learning(s)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    return "\n".join([verdict(s), "", *lines])


def _work(s: Summary) -> list[tuple[str, str]]:
    latency, exact = s["latency_s"], "exact" if counted_exactly(s) else f"{s['lost']} lost, {s['duplicated']} twice"
    over = f"{s['over_target_s']} of {s['produced_s']} s over {s['latency_target_s']:g} s"
    figures = (
        f"p50 {number(latency['p50'], 1)} s, p95 {number(latency['p95'], 1)} s, slowest {number(latency['max'], 1)} s"
    )
    return [
        ("run", f"{s['id']}: {s['policy']} policy, job {s['job']}, {s['trace']} at {s['time_scale']:g}×"),
        ("records", f"{number(s['produced'])} produced, {number(s['counted'])} counted: {exact}"),
        ("stopped", f"{s['stopped_s']} s (longest pause {s['longest_pause_s']:.2f} s), {s['restarts']} restarts"),
        ("latency", f"{figures}; {over}"),
        (
            "cost",
            f"{number(s['executor_s'])} executor-seconds; {number(s['static_executor_s'])} at the most, all the time",
        ),
    ]


def _scaling(s: Summary) -> list[tuple[str, str]]:
    def pair(key: str) -> str:
        return f"p50 {number(s[key]['p50'], 1)} s, p95 {number(s[key]['p95'], 1)} s"

    confirmed = f"{s['scale_ups_by_forecast']} ups by the forecast, {s['forecast_scale_ups_confirmed']} confirmed"
    return [
        (
            "scale actions",
            f"{s['scale_ups']} up, {s['scale_downs']} down; {confirmed}; {s['ineffective']} without effect",
        ),
        ("metrics → decision", pair("metric_to_decision_s")),
        ("decision → executors", pair("decision_to_executor_s")),
        ("decision → use", pair("decision_to_useful_s")),
    ]


def _learning(s: Summary) -> list[tuple[str, str]]:
    rows = [
        (f"forecast v{version}", f"{e['kind']}: error {share(e['wape'], 1)}, 90 % level held {share(e['coverage_90'])}")
        for version, e in s["forecast_error"].items()
    ]
    if s["challenger"]:
        rows.append(("challenger", s["challenger"]["reason"]))
    rows += newcomer(s["newcomer"])
    if s["peak_memory_mb"]:
        rows.append(("peak memory", f"{s['peak_memory_mb'] / 1024:.1f} GB"))
    return rows
