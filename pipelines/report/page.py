"""A run's report: one HTML file that holds everything it needs and opens without a network."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.html.document import document, holder, section, tile_row
from pipelines.html.numbers import number, number_of
from pipelines.html.plot import Chart
from pipelines.report import charts, headline, summary, tables
from pipelines.report.backfill.section import backfill_section
from pipelines.report.measures import RunMeasures, measure_run
from pipelines.report.operation import operation_table
from pipelines.report.recorded.run import load_run
from pipelines.report.time_axis import trace_moments


class RunReport(NamedTuple):
    """What a run came to: its summary, as `summary.json` has it, and the path of its page."""

    summary: dict[str, Any]
    page: Path


def render_report(run_dir: Path, compare: Path | None = None) -> RunReport:
    """Write `summary.json` and `report.html` into a run's folder, replacing older ones; the page needs no network.

    The run of the folder `compare`, if given, is shown beside it on the page.

    Raises:
        RunError, EventLogError: a file of a run or Spark's event log is missing or broken.
        KeyError, ValueError: a file lacks a field, or holds a wrong value.
        ZeroDivisionError, ZoneInfoNotFoundError: a run lasted no time, or the trace's time zone is unknown here.
        OSError: a file cannot be read, or one of the two cannot be written.
    """
    measured = measure_run(load_run(run_dir))
    other = measure_run(load_run(compare)) if compare else None
    figures, path = summary.keep_summary(measured), run_dir / "report.html"
    path.write_text(_page(measured, figures, other), encoding="utf-8")
    return RunReport(figures, path)


def _page(measured: RunMeasures, figures: dict[str, Any], other: RunMeasures | None) -> str:
    other_figures = summary.summary_of(other) if other else None
    chart_by_name = {
        "load": charts.load_chart(measured, other),
        "service": charts.service_chart(measured, other),
    }
    corrected = backfill_section(measured, figures, chart_by_name)
    parts = [
        _head(measured, figures, other_figures),
        tile_row(headline.headline_tiles(figures, other_figures)),
        section(
            "Load and capacity",
            "Records arriving per second against what the executors running can sustain, as the planner knew it. "
            "Below, the executors: registered with the cluster, asked for, and every change with what caused it.",
            holder("load", 520, "arrival rate, capacity and executors over time"),
        ),
        section(
            "Latency, lag, and whether anything stopped",
            "Each record's time from production to the commit that counted it. "
            f"Grey: a scale action was under way. {_stops(figures)}",
            holder("service", 560, "latency, lag and running tasks, second by second"),
        ),
        *corrected,
        section(
            "Decisions",
            f"{number(figures['decisions'])} evaluations, of which {figures['scale_ups'] + figures['scale_downs']} "
            "changed the executors. Each says why, what it expected and what it really did. "
            "Holds in a row for the same cause are one line.",
            tables.decisions_table(measured),
        ),
        _forecast(measured, figures, chart_by_name),
        section(
            "In operation",
            "What whoever keeps such a job running asks for; a dash where a run cannot tell it: nothing had failed.",
            operation_table(figures["operation"]),
        ),
        section("About this run", "", tables.about_html(measured.run, figures)),
    ]
    return document(f"Tidecast run {figures['id']}", "\n".join(parts), chart_by_name)


def _head(measured: RunMeasures, figures: dict[str, Any], other_figures: dict[str, Any] | None) -> str:
    run, length = measured.run, measured.run.end - measured.run.start
    begin, end = trace_moments(run, [0, length])
    started = datetime.fromtimestamp(run.start, UTC)
    about = [
        f"{figures['policy']} policy, job {figures['job']}.",
        f"Trace {figures['trace']}, {begin:%a %-d %b %Y %H:%M} to {end:%a %-d %b %H:%M}, replayed in {length:.0f} s",
        f"({figures['time_scale']:g} times faster) on {started:%-d %B %Y at %H:%M} UTC.",
        run.info.get("fitted", ""),
    ]
    if other_figures:
        about.append(f"Compared with {other_figures['id']} ({other_figures['policy']} policy).")
    first, *more = headline.verdict_lines(figures)
    return (
        f'<h1>Tidecast run {escape(figures["id"])}</h1><p class="about">{escape(" ".join(about))}</p>'
        f'<p class="verdict">{escape(first)}</p>'
        f'<ul class="verdict-more">{"".join(f"<li>{escape(line)}</li>" for line in more)}</ul>'
    )


def _stops(figures: dict[str, Any]) -> str:
    pause = f"The longest pause between tasks while a record waited was {figures['longest_pause_s']:.2f} s."
    if figures["stopped_s"] == 0:
        return f"Records never waited with no task running for longer than the trigger has them wait. {pause}"
    during = f"{figures['stopped_in_action_s']} of them in a scale action"
    return f"In {number_of(figures['stopped_s'], 'second')} records waited and no task ran ({during}). {pause}"


def _forecast(measured: RunMeasures, figures: dict[str, Any], chart_by_name: dict[str, Chart]) -> str:
    if not measured.steps["actual"].notna().any():
        nothing = "No forecast was served while the load ran, so there is nothing to compare."
        return section("Forecast", nothing, tables.challenger_html(figures))
    planning, run, step_s = measured.run.contract.planning, measured.run, measured.step_s
    last = int(measured.steps["ahead"].max())
    needed = max(round((planning.lead_s + planning.hold_s) * run.clock.scale / step_s), 1)
    first = min(needed, last)
    choices = {1: "the next step", last: "the furthest"}
    if needed <= last:
        choices[needed] = "what the planner needs"
    chart_by_name |= {f"fan-{ahead}": charts.forecast_chart(measured, ahead) for ahead in choices}
    buttons = "".join(
        f'<button type="button" data-in="fan" data-show="fan-{ahead}" aria-pressed="{str(ahead == first).lower()}">'
        f"{ahead} ahead: {text}</button>"
        for ahead, text in sorted(choices.items())
    )
    length = f"{step_s / 60:g} minutes" if step_s >= 120 else f"{step_s:g} s"
    beyond = f", further than the {last} that are forecast" if needed > last else ""
    note = (
        f"One step is {length} of the trace, {step_s / run.clock.scale:.1f} s here. "
        f"Executors need {planning.lead_s:g} s to be of use and should stay right for {planning.hold_s:g} s more: "
        f"that is {number_of(needed, 'step')} ahead{beyond}."
    )
    return section(
        "Forecast", note,
        f'<h3>As it was forecast so many steps before</h3><div class="controls">{buttons}</div>'
        + holder(f"fan-{first}", 340, "forecast band and what came", "fan")
        + f"<h3>Model versions that served</h3>{tables.errors_table(figures)}{tables.challenger_html(figures)}",
    )  # fmt: skip
