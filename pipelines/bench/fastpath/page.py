"""The fast path's figures in words and as one HTML file that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pipelines.bench.fastpath.figures import SHARES
from pipelines.figures import goals
from pipelines.figures.form import Finding
from pipelines.html.document import NUMBER, PLAIN, document, holder, row, section, table
from pipelines.html.plot import Chart, line, stacked_rows

Found = dict[str, Any]
COMMAND = "tidecast bench fastpath"
PATHS: dict[str, tuple[str, str, str]] = {
    "socket_floor_us": ("bare echo, Unix socket", "@other", "dot"),
    "in_process_us": ("fast path in process", "@forecast", "dash"),
    "socket_us": ("fast path, Unix socket", "@forecast", "solid"),
    "redis_us": ("Redis stream, Unix socket", "@bad", "solid"),
    "redis_bare_us": ("Redis stream that keeps nothing", "@bad", "dot"),
    "kafka_floor_us": ("bare echo, Kafka", "@other", "dash"),
    "kafka_us": ("fast path, Kafka", "@arrival", "solid"),
    "micro_batch_us": ("Structured Streaming, Kafka", "@capacity", "solid"),
    "in_process_gru_us": ("fast path in process, a GRU", "@executors", "dash"),
    "socket_gru_us": ("fast path, Unix socket, a GRU", "@executors", "solid"),
    "socket_scheduled_floor_us": ("bare echo, Unix socket, 1,000/s", "@other", "dashdot"),
    "socket_scheduled_us": ("fast path, Unix socket, 1,000/s over 16 jobs", "@forecast", "dashdot"),
}
"""Key: name, colour, dash; in the order of the legend."""
_SIGNS = {True: '<span class="good">✓</span> ', False: '<span class="bad">✗</span> ', None: ""}
_TITLE = "From the measurement to the forecast"
_DECADES = [10.0**n for n in range(0, 8)]


def judge_goals(figures: Found) -> list[Finding]:
    """Judge what was measured by the goals of `tidecast bench fastpath`; goals without a measurement are left out.

    Args:
        figures: as from `run.measure_parts`.
    """
    command_goals = goals.goals_of(COMMAND)
    return (
        [finding for finding in command_goals.fill_rows(figures) if finding.measured is not None]
        if command_goals
        else []
    )


def list_remarks(figures: Found) -> list[str]:
    """List sentences, without their period: how many goals are met, which are missed, how busy the machine was.

    Cores and load averages are given, with a warning above half a load per core, then a sentence per part not measured.

    Args:
        figures: as from `run.measure_parts`.

    Raises:
        KeyError: `host`, one of its keys or `absent` is not in it.
        FigureError: a goal of the command is not in its form, or what it judges is text.
    """
    host, judged = figures["host"], [one for one in judge_goals(figures) if one.holds is not None]
    missed = "".join(f"; missed: {one.what}" for one in judged if not one.holds)
    load = f"load average {host['load_before']:.1f} before and {host['load_after']:.1f} after"
    lines = [
        f"{sum(one.holds is True for one in judged)} of {len(judged)} goals are met{missed}",
        f"{host['cores']} cores, {load}; every figure is the median over the runs of that run's percentile",
    ]
    if host["load_before"] > host["cores"] / 2:
        lines.append("The machine had other work, so no verdict on a latency counts: measure again on a quiet one")
    return [*lines, *(f"{name} was not measured: {why}" for name, why in figures["absent"].items())]


def format_us(value: float) -> str:
    """Format microseconds for people, as "9.3 µs", "120 µs", "1.5 ms" or "250 ms"."""
    if value >= 1000:
        return f"{value / 1000:,.1f} ms" if value < 100_000 else f"{value / 1000:,.0f} ms"
    return f"{value:.0f} µs" if value >= 10 else f"{value:.1f} µs"


def write_page(figures: Found, path: Path) -> Path:
    """Write the page to a file, in a new folder if need be, and return its path.

    Args:
        figures: as from `run.measure_parts`.
        path: of the HTML file; an older one is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(figures), encoding="utf-8")
    return path


def render_page(figures: Found) -> str:
    """Render the figures of `run.measure_parts` as one HTML document that needs no network.

    It has goals and remarks; charts and percentiles only of the paths that were measured.

    Raises:
        KeyError: `host` or `absent` is missing, or a path lacks a percentile or its curve.
        FigureError: a goal of the command is not in its form, or what it judges is text.
        ValueError: a latency is NaN or infinite.
    """
    parts = [
        f"<h1>{_TITLE}</h1>",
        '<p class="about">A sample of a job’s load goes in; window, state and forecast are written in one transaction '
        "and the forecast comes out. Each path is measured in turn with its floor, a bare echo of the same bytes, and "
        "with what people would use instead. The champion is a GRU that was fitted to a real load.</p>",
        section("Goals", "", _goals(figures)),
        section("Remarks", "", "".join(f"<p>{escape(remark)}.</p>" for remark in list_remarks(figures))),
    ]
    charts: dict[str, Chart] = {}
    if any(figures.get(key) for key in PATHS):
        charts["distributions"] = _distributions(figures)
        note = (
            "How many of the events took longer than so long; both axes are logarithmic. Further left is faster, "
            "steeper is steadier."
        )
        drawn = holder("distributions", 520, "share of events that took longer against time, a line per path")
        parts.append(section("Whole distributions", note, drawn))
        parts.append(section("In figures", "Median over the runs; count is that of all events.", _paths(figures)))
    return document(f"Tidecast: {_TITLE.lower()}", "\n".join(parts), charts)


def _goals(figures: Found) -> str:
    kinds = [PLAIN, PLAIN, NUMBER]
    lines = [
        row([escape(one.what), escape(one.goal or ""), f"{_SIGNS[one.holds]}{one.measured:,.4g}"], kinds)
        for one in judge_goals(figures)
    ]
    return table(["what", "goal", "measured"], kinds, lines)


def _paths(figures: Found) -> str:
    kinds = [PLAIN, *[NUMBER] * (len(SHARES) + 2)]
    lines = []
    for key, (name, *_) in PATHS.items():
        if one := figures.get(key):
            span = " to ".join(format_us(value) for value in one["range"]["p99"])
            lines.append(row([escape(name), *(format_us(one[n]) for n in SHARES), span, f"{one['count']:,}"], kinds))
    return table(["path", "p50", "p90", "p99", "p99.9", "most", "p99 over runs", "count"], kinds, lines, 'class="wide"')


def _distributions(figures: Found) -> Chart:
    """Share of the events that took longer, against the time: one line per path."""
    data = []
    for key, (name, colour, dash) in PATHS.items():
        if figures.get(key):
            shares, took = zip(*figures[key]["curve"], strict=True)
            data.append({
                **line(None, None, name, colour, dash=dash, width=2.4 if dash == "solid" else 1.8), "x": took,
                "y": shares, "customdata": [1 / share for share in shares],
                "hovertemplate": "%{fullData.name}: 1 of %{customdata:,.0f} takes over %{x:,.0f} µs<extra></extra>",
            })  # fmt: skip
    layout = stacked_rows([("share of the events that took longer", 1.0)])
    layout["xaxis"] |= {
        "type": "log", "tickvals": _DECADES, "ticktext": [format_us(tick) for tick in _DECADES],
        "title": {"text": "from the sample to its forecast", "font": {"size": 13}},
    }  # fmt: skip
    layout["yaxis"] |= {
        "type": "log", "rangemode": "normal", "tickvals": [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5],
        "ticktext": ["half", "1 in 10", "1 in 100", "1 in 1,000", "1 in 10,000", "1 in 100,000"],
    }  # fmt: skip
    layout["margin"]["l"] = 84
    return {"data": data, "layout": layout | {"hovermode": "closest"}}
