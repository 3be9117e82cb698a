"""The value map as plain text, and the sentences of its page."""

from __future__ import annotations

from typing import Any

from models.twin.experiment.contenders import OURS, TRUE_FUTURE
from models.twin.experiment.value import GAP, LIKE_REACTIVE, TOO_DEAR
from pipelines.html.columns import aligned
from pipelines.html.numbers import number, share

Found = dict[str, Any]


def best_policy(found: Found) -> str | None:
    """Return the name of our policy with the largest median share of the gap captured; None where none took part."""
    ours = {name: found["summary"][name]["captured"] for name in OURS if name in found["summary"]}
    return max(ours, key=lambda name: -1e9 if ours[name] is None else ours[name], default=None)


def gap_sentences(found: Found) -> list[str]:
    """Return sentences on what knowing the future would save against the best reactive policy, overall and by lead.

    Args:
        found: as `compute_value_map` returns it.
    """
    cells = [cell for cell in found["cells"] if cell["gap"] is not None]
    gained = [cell for cell in cells if cell["gap"] >= GAP]
    said = [
        f"In {len(gained)} of {len(cells)} cells somebody who knew the future would save {GAP:.0%} or more against the "
        "best policy that only reacts, tuned in hindsight."
    ]
    for lead in found["leads_s"]:
        gaps = sorted(cell["gap"] for cell in cells if cell["lead_s"] == lead)
        if gaps:
            said.append(f"With {lead:g} s until an executor works: {share(gaps[len(gaps) // 2], 1)} in the median.")
    return said


def forecast_value_sentences(found: Found) -> list[str]:
    """Return sentences on the hours of `mpc` against those of itself without a forecast and with the last value.

    Args:
        found: as `compute_value_map` returns it; [] where it compared none.
    """
    called = {"mpc:none": "without a forecast", "mpc:last_value": "with the last value"}
    return [
        f"mpc takes {number(one['hours'], 3)} × what the same planner takes {called[name]} (median of "
        f"{one['compared']} cells with a gap; cheaper in {one['cheaper']}; in {one['kept_by_forecast_alone']} more it "
        "alone keeps the promise)."
        for name, one in found.get("forecast_adds", {}).items()
        if one["cells"]
    ]


def policy_lines(name: str, one: Found) -> list[str]:
    """Return lines of text on one of our policies, over all cells of the map.

    Args:
        name: of the policy.
        one: its entry in the map's `summary`.

    Raises:
        KeyError: a figure is missing.
    """
    every, flat = one["all"], one["nothing_to_gain"]
    worst, dearest = every["worst"], ""
    if worst is not None and worst["ratio"] is not None:
        where = f"{worst['trace']}, {worst['lead_s']:g} s, {share(worst['violation'], 1)}"
        dearest = f"; dearest: {where}: {worst['ratio']:.3f} ×"
    said = [
        f"{name}: captures {number(one['captured'], 2)} of the gap (median of {one['gap_cells']} cells with a gap of "
        f"{GAP:.0%} or more; {share(one['captured_at_least_half'])} of them at least half)",
        f"  no more than {LIKE_REACTIVE} × the best reactive policy in {share(flat['like_reactive'])} of "
        f"{flat['cells']} cells with nothing to gain ({share(every['like_reactive'])} of all {every['cells']}); "
        f"above {TOO_DEAR} × in {flat['too_dear']} ({every['too_dear']} of all){dearest}",
        f"  against what is shipped, at its own violation: {number(one['against_defaults'], 2)} × the executor-hours ("
        + ", ".join(f"{default} {number(ratio, 2)}" for default, ratio in one["by_default"].items())
        + f"); against the optimum at 60 s and 1 %: {number(one['against_optimum'], 3)} ×",
    ]
    if one["broken"]:
        said.append(f"  breaks its promise whatever its knob in {one['broken']} cells")
    return said


def format_map(found: Found) -> str:
    """Return a value map as text: a line per cell (trace, lead time, allowed share), the verdict and the sums.

    Args:
        found: as `compute_value_map` returns it.

    Raises:
        KeyError: a key of the map is missing.
    """
    names = list(found["summary"])
    ours = [f"{name} {what}" for what in ("×", "captured") for name in names]
    titles = ["trace", "lead", "over", "best reactive", "hours", "true future", *ours]
    rows = aligned([titles, *(format_cell(cell, names) for cell in found["cells"])], left=(0, 3))
    sums = [line for name, one in found["summary"].items() for line in policy_lines(name, one)]
    left_out = [f"{name} was left out: {reason}" for name, reason in found["left_out"].items()]
    return "\n".join([*rows, "", *gap_sentences(found), *forecast_value_sentences(found), *sums, *left_out])


def format_cell(cell: Found, names: list[str]) -> list[str]:
    """Return a cell's figures as text, in the order of the table's columns; a dash for what is unknown.

    Args:
        cell: one of the map's `cells`.
        names: our policies, each with a ratio to the best reactive policy's hours and a captured share of the gap.
    """
    reactive, hours = cell["best_reactive"], cell["hours"]
    base, known = hours.get(reactive), hours[TRUE_FUTURE]
    return [
        cell["trace"], f"{cell['lead_s']:g} s", share(cell["violation"], 1), reactive or "none",
        number(base), number(known / base, 3) if base and known else "–",
        *(number(cell["ratio"].get(name), 3) for name in names),
        *(number(cell["captured"].get(name), 2) for name in names),
    ]  # fmt: skip
