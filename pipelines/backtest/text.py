"""A backtest as plain text for the terminal, and the sentences of its page."""

from __future__ import annotations

import math
from typing import Any

from models.twin.experiment.contenders import OURS, REACTIVE, TRUE_FUTURE
from models.twin.experiment.results import BOUND, OPTIMUM
from pipelines.html.columns import aligned
from pipelines.html.numbers import number
from pipelines.traces.series_file import format_step

HEARD_FORECASTS = {
    "no_forecast": "no forecast", "last_value": "the last value", "ours": "ours", "true_future": "the true future",
}  # fmt: skip
KEY_LEVEL = "0.01"  # share of seconds over the latency target
COLUMNS = ("policy", "0.1 %", "1 %", "5 %", "× optimum", "p99 s", "worst s", "actions", "knob")


def describe_backtest(backtest: dict[str, Any]) -> str:
    """Return a sentence on what was replayed on what job.

    Args:
        backtest: as from `report.backtest_to_json`.
    """
    days, bounds = backtest["test"]["seconds"] / 86400, backtest["executors"]
    rps, carriers = backtest["peak_rps"], bounds["at_peak"]
    carry = {None: f"not even {bounds['most']} carry", 1: "1 carries"}.get(carriers, f"{carriers} carry")
    peak = f"{carry} the peak of {number(rps) if rps >= 100 else f'{rps:.3g}'} records/s"
    engine = "restarts at every change" if backtest["engine"] == "restart" else "does not restart"
    return (
        f"{backtest['trace']}: the newest {days:.2g} days in steps of {format_step(backtest['step_s'])}; executors "
        f"take {backtest['lead_s']:g} s to come, {bounds['least']} to {bounds['most']} of them, {peak}; "
        f"the engine {engine}; target {backtest['latency_target_s']:g} s, {backtest['seeds']} seeds"
    )


def verdict_sentence(backtest: dict[str, Any]) -> str:
    """Return sentences on what a forecast saves, in executor-hours where 1 % of seconds are over the latency target.

    They compare the cheapest policies without a forecast and of ours, the true future and the best plan; where no
    policy without a forecast took part, or none keeps to 1 %, a sentence says so.

    Args:
        backtest: as from `report.backtest_to_json`.
    """
    costs = backtest["cheapest_at_violation"][KEY_LEVEL]
    if not any(name in backtest["policies"] for name in REACTIVE):
        return (
            f"No policy without a forecast took part; with one of {', '.join(REACTIVE)} there is something to compare."
        )
    reactive, ours = cheapest_policy(costs, REACTIVE), cheapest_policy(costs, OURS)
    if reactive is None:
        return "No policy without a forecast keeps 99 % of the seconds within the target here."
    sentences = [f"At 1 % of the seconds over the target the cheapest policy without a forecast is {reactive}: "
            f"{format_hours(costs[reactive])} executor-hours."]  # fmt: skip
    for what, name in ((f"Ours ({ours}) takes", ours), ("Knowing the true future would take", TRUE_FUTURE)):
        if name is not None and (cost := costs.get(name)) is not None:
            share = 1 - cost / costs[reactive]
            sentences.append(f"{what} {format_hours(cost)}, {abs(share):.1%} {'less' if share >= 0 else 'more'}.")
    if costs.get(OPTIMUM) is not None:
        best, bound = format_hours(costs[OPTIMUM]), format_hours(costs.get(BOUND))
        sentences.append(f"The best plan found in hindsight takes {best}; no policy can take less than {bound}.")
    return " ".join(sentences)


def format_hours(cost: float | None) -> str:
    """Format executor-hours: one decimal from 10 on, three digits below; a dash for None."""
    return number(cost, 1) if cost is None or cost >= 10 else f"{cost:.3g}"


def format_backtest(backtest: dict[str, Any]) -> str:
    """Format a backtest as text for the terminal: a line per policy, cheapest at 1 % first, and sentences under them.

    Costs are executor-hours at 0.1, 1 and 5 % of the seconds over the latency target. Latencies, actions and knob (the
    one tuned parameter) are those of the knob value nearest to 1 %.

    Args:
        backtest: as from `report.backtest_to_json`; KeyError where it lacks a figure.
    """
    costs = backtest["cheapest_at_violation"][KEY_LEVEL]
    order = sorted(backtest["policies"], key=lambda name: math.inf if costs[name] is None else costs[name])
    rows = aligned([list(COLUMNS), *(format_policy(name, backtest) for name in order)])
    lines = [describe_backtest(backtest), "", "executor-hours at so many seconds over the target:", *rows]
    if costs.get(BOUND):
        lines.append(f"no policy can take less than {format_hours(costs[BOUND])} at 1 %")
    return "\n".join(
        [
            *lines,
            "",
            *usual_setting_lines(backtest),
            *ablation_lines(backtest),
            "",
            verdict_sentence(backtest),
            *remark_lines(backtest),
        ]
    )


def format_policy(name: str, backtest: dict[str, Any]) -> list[str]:
    """Format one policy of a backtest as a row of `format_backtest`, in the order of COLUMNS; a dash for the unknown.

    Args:
        name: of the policy; KeyError if it did not take part.
        backtest: as from `report.backtest_to_json`.
    """
    costs_at = backtest["cheapest_at_violation"]
    points = backtest["policies"][name]
    point = min(points, key=lambda p: abs(p["violation"] - 0.01))
    costs, best = costs_at[KEY_LEVEL], costs_at[KEY_LEVEL].get(OPTIMUM)
    ratio = costs[name] / best if best and costs[name] is not None else None
    return [
        name, *(format_hours(costs_at[level][name]) for level in ("0.001", "0.01", "0.05")),
        number(ratio, 3), number(point["p99_latency_s"], 1), number(point["worst_latency_s"]),
        number(point["actions"]), f"{point['knob']:.3g}",
    ]  # fmt: skip


def usual_setting_lines(backtest: dict[str, Any]) -> list[str]:
    """Return a line per policy that has a usual setting: what that costs and violates, and ours at that violation.

    Cost is in executor-hours, violation the share of seconds over the latency target; [] without such a policy.

    Args:
        backtest: as from `report.backtest_to_json`; KeyError where it lacks a figure.
    """
    lines = []
    for name, default in backtest["as_shipped"].items():
        paid = default["executor_hours"]
        theirs = [
            f"{n} {format_hours(cost)} ({cost / paid:.2f} ×)"
            for n, cost in default["others"].items()
            if cost is not None
        ]
        lines.append(
            f"{name} at its usual setting ({default['knob']:g}): {format_hours(paid)} executor-hours with "
            f"{100 * default['violation']:.2g} % over the target; at the same violation "
            f"{', '.join(theirs) or 'none of ours'}"
        )
    return lines


def ablation_lines(backtest: dict[str, Any]) -> list[str]:
    """Return a line per planner of ours: executor-hours at 1 % by the forecast it is given, none to the true future.

    Args:
        backtest: as from `report.backtest_to_json`.
    """
    return [
        f"{name} at 1 %, hearing "
        + "; ".join(
            f"{HEARD_FORECASTS[forecast]}: {format_hours(cost)}" for forecast, cost in costs_at[KEY_LEVEL].items()
        )
        for name, costs_at in backtest["ablation"].items()
    ]


def remark_lines(backtest: dict[str, Any]) -> list[str]:
    """Return lines on why policies were left out, and on how often one's target was NaN or out of the job's bounds.

    Decisions of all simulations are counted; a policy without any gets no line.

    Args:
        backtest: as from `report.backtest_to_json`.
    """
    lines = [f"{name} was left out: {reason}" for name, reason in backtest["left_out"].items()]
    for name, points in backtest["policies"].items():
        for key, what in (("not_a_number", "was no number, the target stayed"), ("clamped", "was out of bounds")):
            if count := sum(point[key] for point in points):
                lines.append(f"{name}: an answer {what}, {number(count)} times")
    return lines


def cheapest_policy(costs: dict[str, float | None], names: tuple[str, ...]) -> str | None:
    """Return the name of the cheapest policy; None where none has a known cost.

    Args:
        costs: executor-hours by policy.
        names: of the policies to choose from.
    """
    known = {name: cost for name in names if (cost := costs.get(name)) is not None}
    return min(known, key=lambda name: known[name]) if known else None
