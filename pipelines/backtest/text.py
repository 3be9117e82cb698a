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
KEY_LEVEL = "0.01"
COLUMNS = ("policy", "0.1 %", "1 %", "5 %", "× optimum", "p99 s", "worst s", "actions", "knob")


def describe_backtest(found: dict[str, Any]) -> str:
    """Return a sentence on what was replayed on what job; `found` as `report.backtest_to_json` returns it."""
    days, bounds = found["test"]["seconds"] / 86400, found["executors"]
    engine = "restarts at every change" if found["engine"] == "restart" else "does not restart"
    return (
        f"{found['trace']}: the newest {days:.2g} days in steps of {format_step(found['step_s'])}; executors take "
        f"{found['lead_s']:g} s to come, {bounds['least']} to {bounds['most']} of them, {bounds['at_peak']} carry the "
        f"peak; the engine {engine}; target {found['latency_target_s']:g} s, {found['seeds']} seeds"
    )


def verdict_sentence(found: dict[str, Any]) -> str:
    """Return sentences on what a forecast saves here, with 1 % of the seconds over the target.

    Args:
        found: as `report.backtest_to_json` returns it.
    """
    costs = found["cheapest_at_violation"][KEY_LEVEL]
    if not any(name in found["policies"] for name in REACTIVE):
        return (
            f"No policy without a forecast took part; with one of {', '.join(REACTIVE)} there is something to compare."
        )
    reactive, ours = cheapest_policy(costs, REACTIVE), cheapest_policy(costs, OURS)
    if reactive is None:
        return "No policy without a forecast keeps 99 % of the seconds within the target here."
    said = [f"At 1 % of the seconds over the target the cheapest policy without a forecast is {reactive}: "
            f"{format_hours(costs[reactive])} executor-hours."]  # fmt: skip
    for what, name in ((f"Ours ({ours}) takes", ours), ("Knowing the true future would take", TRUE_FUTURE)):
        if name is not None and (cost := costs.get(name)) is not None:
            share = 1 - cost / costs[reactive]
            said.append(f"{what} {format_hours(cost)}, {abs(share):.1%} {'less' if share >= 0 else 'more'}.")
    if costs.get(OPTIMUM) is not None:
        best, bound = format_hours(costs[OPTIMUM]), format_hours(costs.get(BOUND))
        said.append(f"The best plan found in hindsight takes {best}; no policy can take less than {bound}.")
    return " ".join(said)


def format_hours(cost: float | None) -> str:
    """Format executor-hours: one decimal from 10 on, three digits below; a dash for None."""
    return number(cost, 1) if cost is None or cost >= 10 else f"{cost:.3g}"


def format_backtest(found: dict[str, Any]) -> str:
    """Return a backtest as text for the terminal: a line per policy, cheapest at 1 % first, and all sentences under it.

    Columns beside the costs are of the knob value whose violation is nearest to 1 %.

    Args:
        found: as `report.backtest_to_json` returns it.

    Raises:
        KeyError: a figure is missing.
    """
    costs = found["cheapest_at_violation"][KEY_LEVEL]
    order = sorted(found["policies"], key=lambda name: math.inf if costs[name] is None else costs[name])
    rows = aligned([list(COLUMNS), *(format_policy(name, found) for name in order)])
    said = [describe_backtest(found), "", "executor-hours at so many seconds over the target:", *rows]
    if costs.get(BOUND):
        said.append(f"no policy can take less than {format_hours(costs[BOUND])} at 1 %")
    return "\n".join(
        [
            *said,
            "",
            *vendor_default_lines(found),
            *ablation_lines(found),
            "",
            verdict_sentence(found),
            *remark_lines(found),
        ]
    )


def format_policy(name: str, found: dict[str, Any]) -> list[str]:
    """Return a policy's figures as text, in the order of `COLUMNS`; a dash for what is unknown.

    Args:
        name: of the policy.
        found: as `report.backtest_to_json` returns it.

    Raises:
        KeyError: the policy did not take part.
    """
    by = found["cheapest_at_violation"]
    points = found["policies"][name]
    point = min(points, key=lambda p: abs(p["violation"] - 0.01))
    costs, best = by[KEY_LEVEL], by[KEY_LEVEL].get(OPTIMUM)
    ratio = costs[name] / best if best and costs[name] is not None else None
    return [
        name, *(format_hours(by[level][name]) for level in ("0.001", "0.01", "0.05")),
        number(ratio, 3), number(point["p99_latency_s"], 1), number(point["worst_latency_s"]),
        number(point["actions"]), f"{point['knob']:.3g}",
    ]  # fmt: skip


def vendor_default_lines(found: dict[str, Any]) -> list[str]:
    """Return a line per policy at its vendor's default: cost and violation, and what ours take at the same one."""
    lines = []
    for name, one in found["as_shipped"].items():
        paid = one["executor_hours"]
        theirs = [
            f"{n} {format_hours(cost)} ({cost / paid:.2f} ×)" for n, cost in one["others"].items() if cost is not None
        ]
        lines.append(
            f"{name} as shipped ({one['knob']:g}): {format_hours(paid)} executor-hours with "
            f"{100 * one['violation']:.2g} % over the target; at the same violation "
            f"{', '.join(theirs) or 'none of ours'}"
        )
    return lines


def ablation_lines(found: dict[str, Any]) -> list[str]:
    """Return a line per planner of ours: executor-hours at 1 % by the forecast it is given, from none to the truth."""
    return [
        f"{name} at 1 %, hearing "
        + "; ".join(f"{HEARD_FORECASTS[ear]}: {format_hours(cost)}" for ear, cost in heard[KEY_LEVEL].items())
        for name, heard in found["ablation"].items()
    ]


def remark_lines(found: dict[str, Any]) -> list[str]:
    """Return lines on policies left out, and on those that answered with NaN or out of bounds and how often."""
    said = [f"{name} was left out: {reason}" for name, reason in found["left_out"].items()]
    for name, points in found["policies"].items():
        for key, what in (("not_a_number", "was no number, the target stayed"), ("clamped", "was out of bounds")):
            if count := sum(point[key] for point in points):
                said.append(f"{name}: an answer {what}, {number(count)} times")
    return said


def cheapest_policy(costs: dict[str, float | None], names: tuple[str, ...]) -> str | None:
    """Return the cheapest of some policies by executor-hours; None where none has a known cost."""
    known = {name: cost for name in names if (cost := costs.get(name)) is not None}
    return min(known, key=lambda name: known[name]) if known else None
