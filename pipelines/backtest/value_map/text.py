"""The value map as plain text, and the sentences of its page."""

from __future__ import annotations

import statistics
from typing import Any

from models.twin.experiment.contenders import OURS, TRUE_FUTURE
from models.twin.experiment.value import GAP, LIKE_REACTIVE, TOO_DEAR
from pipelines.html.columns import aligned
from pipelines.html.numbers import number, share

Found = dict[str, Any]


def best_policy(value_map: Found) -> str | None:
    """Return the name of our policy that captures most of the gap in the median; None where none of ours took part.

    Args:
        value_map: as `compute_value_map` returns it.
    """
    ours = {name: value_map["summary"][name]["captured"] for name in OURS if name in value_map["summary"]}
    return max(ours, key=lambda name: -1e9 if ours[name] is None else ours[name], default=None)


def gap_sentences(value_map: Found) -> list[str]:
    """Return sentences on what knowing the future would save against the best reactive policy: overall, per lead time.

    Savings are shares of its executor-hours, the median per lead time (seconds until a requested executor works); a
    lead time without a comparison gets no sentence.

    Args:
        value_map: as `compute_value_map` returns it.
    """
    cells = [cell for cell in value_map["cells"] if cell["gap"] is not None]
    worthwhile = [cell for cell in cells if cell["gap"] >= GAP]
    sentences = [
        f"In {len(worthwhile)} of {len(cells)} cells somebody who knew the future would save {GAP:.0%} or more against "
        "the best policy that only reacts, tuned in hindsight."
    ]
    for lead in value_map["leads_s"]:
        gaps = [cell["gap"] for cell in cells if cell["lead_s"] == lead]
        if gaps:
            sentences.append(
                f"With {lead:g} s until an executor works: {share(statistics.median(gaps), 1)} in the median."
            )
    return sentences


def forecast_value_sentences(value_map: Found) -> list[str]:
    """Return a sentence each on executor-hours of `mpc` ÷ those of `mpc` without a forecast and with the last value.

    Args:
        value_map: as `compute_value_map` returns it.

    Returns:
        [] where the map has no such comparison.
    """
    variants = {"mpc:none": "without a forecast", "mpc:last_value": "with the last value"}
    return [
        f"mpc takes {number(compared['hours'], 3)} × what the same planner takes {variants[name]} (median of "
        f"{compared['compared']} cells with a gap; cheaper in {compared['cheaper']}; in "
        f"{compared['kept_by_forecast_alone']} more it alone keeps the promise)."
        for name, compared in value_map.get("forecast_adds", {}).items()
        if compared["cells"]
    ]


def policy_lines(name: str, summary: Found) -> list[str]:
    """Return 3 or 4 lines on one of our policies, over all traces, lead times and allowed shares of late seconds.

    They say what it captures of the gap (what the true future saves), where it is dearest, its executor-hours ÷ those
    of policies at their usual settings and of the optimum, and how often it never keeps the share.

    Args:
        name: of the policy.
        summary: its entry in the map's `summary`; KeyError where a figure is missing.
    """
    every, flat = summary["all"], summary["nothing_to_gain"]
    worst, dearest = every["worst"], ""
    if worst is not None and worst["ratio"] is not None:
        where = f"{worst['trace']}, {worst['lead_s']:g} s, {share(worst['violation'], 1)}"
        dearest = f"; dearest: {where}: {worst['ratio']:.3f} ×"
    lines = [
        f"{name}: captures {number(summary['captured'], 2)} of the gap (median of {summary['gap_cells']} cells with a "
        f"gap of {GAP:.0%} or more; {share(summary['captured_at_least_half'])} of them at least half)",
        f"  no more than {LIKE_REACTIVE} × the best reactive policy in {share(flat['like_reactive'])} of "
        f"{flat['cells']} cells with nothing to gain ({share(every['like_reactive'])} of all {every['cells']}); "
        f"above {TOO_DEAR} × in {flat['too_dear']} ({every['too_dear']} of all){dearest}",
        f"  against what is shipped, at its own violation: {number(summary['against_defaults'], 2)} × the "
        "executor-hours ("
        + ", ".join(f"{default} {number(ratio, 2)}" for default, ratio in summary["by_default"].items())
        + f"); against the optimum at 60 s and 1 %: {number(summary['against_optimum'], 3)} ×",
    ]
    if summary["broken"]:
        lines.append(f"  breaks its promise whatever its knob in {summary['broken']} cells")
    return lines


def format_map(value_map: Found) -> str:
    """Return a value map as text: a line per trace, lead time and allowed share of late seconds, verdict and sums.

    Args:
        value_map: as `compute_value_map` returns it; KeyError where a key is missing.
    """
    names = list(value_map["summary"])
    ours = [f"{name} {what}" for what in ("×", "captured") for name in names]
    titles = ["trace", "lead", "over", "best reactive", "hours", "true future", *ours]
    rows = aligned([titles, *(format_cell(cell, names) for cell in value_map["cells"])], left=(0, 3))
    sums = [line for name, summary in value_map["summary"].items() for line in policy_lines(name, summary)]
    left_out = [f"{name} was left out: {reason}" for name, reason in value_map["left_out"].items()]
    return "\n".join([*rows, "", *gap_sentences(value_map), *forecast_value_sentences(value_map), *sums, *left_out])


def format_cell(cell: Found, names: list[str]) -> list[str]:
    """Format one cell of the map as the row of `format_map`; a dash for what is unknown.

    Args:
        cell: one of the map's `cells`.
        names: of our policies; each has a column: hours ÷ the best reactive policy's, and one of its share of the gap.
    """
    reactive, hours = cell["best_reactive"], cell["hours"]
    base, known = hours.get(reactive), hours[TRUE_FUTURE]
    return [
        cell["trace"], f"{cell['lead_s']:g} s", share(cell["violation"], 1), reactive or "none",
        number(base), number(known / base, 3) if base and known else "–",
        *(number(cell["ratio"].get(name), 3) for name in names),
        *(number(cell["captured"].get(name), 2) for name in names),
    ]  # fmt: skip
