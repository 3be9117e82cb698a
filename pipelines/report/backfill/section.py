"""The page's section on a run's backfill."""

from __future__ import annotations

from html import escape
from typing import Any

from pipelines.html.document import holder, section, tile_row
from pipelines.html.plot import Chart
from pipelines.report.backfill.charts import beside_chart, control_chart
from pipelines.report.backfill.measure import BackfillMeasures, limits_met, measure_backfill
from pipelines.report.backfill.text import backfill_tiles
from pipelines.report.measures import RunMeasures

LIMITS = {
    "admission": "what live records leave of the certain capacity",
    "credits": "its share of the bottleneck",
    "borne": "what live records have borne",
    "step": "how fast it may rise",
    "relief": "the relief ladder",
    "unread": "a signal that was not read",
    "backlog": "what was left to read",
}
"""What the limits of a replay's rate mean, by the controller's names."""


def backfill_section(measured: RunMeasures, figures: dict[str, Any], chart_by_name: dict[str, Chart]) -> list[str]:
    """Return HTML of the section, in a list, and put its charts among those of the page; [] without a backfill.

    Raises:
        KeyError, models.contract.declared.TermsError: a decision's inputs on replays are not as they were written.
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    found = measure_backfill(measured)
    if found is None:
        return []
    b = figures["backfill"]
    chart_by_name["backfill"] = beside_chart(measured, found)
    parts = [tile_row(backfill_tiles(b)), holder("backfill", 760, "rates, executors, live latency and progress")]
    if len(found.control):
        chart_by_name["backfill-control"] = control_chart(measured, found)
        said = holder("backfill-control", 360, "multipliers of limits and relief ladder")
        parts.append(f'<h3>What its rate was decided by</h3><p class="note">{_bounds(found)}</p>{said}')
    note = (
        "An hour of which some records had come too late was read again by the job's own driver, on the same executors "
        "while live load went on (grey: from its order to its end). The autoscaler decided its rate."
    )
    if b["plan"]:
        note += f" Planned: {b['plan']}."
    return [section("Backfill of a corrected hour", note, "".join(parts))]


def _bounds(found: BackfillMeasures) -> str:
    met = limits_met(found)
    told = ", ".join(f"{escape(LIMITS.get(name, name))} ({count})" for name, count in met)
    bound = f"Of the decisions on its rate, so many stood at a limit: {told}. " if met else ""
    return (
        f"{bound}A multiplier is the price of a limit, and rises while the limit is exceeded. What lowers the rate "
        "then is what live records have borne. Relief begins with the replay's stop, should live records stay beyond a "
        "limit."
    )
