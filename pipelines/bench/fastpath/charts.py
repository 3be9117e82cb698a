"""The charts of the fast path's page: distributions on log axes, spreads side by side, memory over puts."""

from __future__ import annotations

from typing import Any

from pipelines.bench.fastpath.page_text import us
from pipelines.html.plot import Chart, line, rows

PATHS: dict[str, tuple[str, str, str]] = {
    "socket_floor_us": ("bare echo, Unix socket", "@other", "dot"),
    "in_process_us": ("fast path in process", "@forecast", "dash"),
    "socket_us": ("fast path, Unix socket", "@forecast", "solid"),
    "redis_us": ("Redis stream, Unix socket", "@bad", "solid"),
    "redis_bare_us": ("Redis stream that keeps nothing", "@bad", "dot"),
    "kafka_floor_us": ("bare echo, Kafka", "@other", "dash"),
    "kafka_us": ("fast path, Kafka", "@arrival", "solid"),
    "micro_batch_us": ("Structured Streaming, Kafka", "@capacity", "solid"),
}
"""Key: name, colour, dash; in the order of the legend."""
MORE: dict[str, str] = {
    "in_process_blend_us": "fast path in process, blend",
    "socket_blend_us": "fast path, Unix socket, blend",
    "socket_scheduled_floor_us": "bare echo, Unix socket, 1,000/s",
    "socket_scheduled_us": "fast path, Unix socket, 1,000/s over 16 jobs",
}
"""Further rows of the table of distributions."""
_DECADES = [10.0**n for n in range(0, 8)]


def distributions(found: dict[str, Any]) -> Chart:
    """Share of the events that took longer, against the time: one line per path."""
    data = []
    for key, (name, colour, dash) in PATHS.items():
        if found.get(key):
            points = found[key]["curve"]
            trace = line(None, None, name, colour, dash=dash, width=2.4 if dash == "solid" else 1.8)
            hover = "%{fullData.name}: 1 of %{customdata:,.0f} takes over %{x:,.0f} µs<extra></extra>"
            data.append({
                **trace, "x": [took for _, took in points], "y": [share for share, _ in points],
                "customdata": [1 / share for share, _ in points], "hovertemplate": hover,
            })  # fmt: skip
    layout = rows([("share of the events that took longer", 1.0)])
    layout["xaxis"] |= {
        "type": "log", "tickvals": _DECADES, "ticktext": [us(tick) for tick in _DECADES],
        "title": {"text": "from the sample to its forecast", "font": {"size": 13}},
    }  # fmt: skip
    layout["yaxis"] |= {
        "type": "log", "rangemode": "normal", "tickvals": [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5],
        "ticktext": ["half", "1 in 10", "1 in 100", "1 in 1,000", "1 in 10,000", "1 in 100,000"],
    }  # fmt: skip
    layout["margin"]["l"] = 84
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def spreads(found: dict[str, Any]) -> Chart:
    """p50, p99 and p99.9 of every path side by side, with their range over the runs."""
    known = [(key, name, colour) for key, (name, colour, _) in PATHS.items() if found.get(key)][::-1]
    data: list[Chart] = []
    for percentile, said, symbol in (("p50", "p50", "circle"), ("p99", "p99", "diamond"), ("p99_9", "p99.9", "x")):
        at = [found[key][percentile] for key, *_ in known]
        low, high = zip(*(found[key]["range"][percentile] for key, *_ in known), strict=True)
        data.append({
            "type": "scatter", "mode": "markers", "x": at, "y": [name for _, name, _ in known], "name": said,
            "marker": {"symbol": symbol, "size": 11, "color": [colour for *_, colour in known]},
            "error_x": {
                "type": "data", "symmetric": False, "array": [h - a for h, a in zip(high, at, strict=True)],
                "arrayminus": [a - b for a, b in zip(at, low, strict=True)], "color": "@muted", "thickness": 1,
            },
            "text": [us(value) for value in at], "hovertemplate": f"%{{y}}: {said} %{{text}}<extra></extra>",
        })  # fmt: skip
    layout = rows([("", 1.0)])
    layout["xaxis"] |= {"type": "log", "tickvals": _DECADES, "ticktext": [us(tick) for tick in _DECADES]}
    layout["yaxis"] |= {"rangemode": "normal", "automargin": True}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def memory(found: dict[str, Any]) -> Chart:
    """Memory and files over the puts."""
    points = found["memory"]["points"]
    puts = [point["puts"] for point in points]
    data = [
        line(puts, [point["uss"] / 1e6 for point in points], "memory of its own", "@forecast"),
        line(puts, [point["file"] / 1e6 for point in points], "files", "@arrival"),
    ]
    layout = rows([("megabytes", 1.0)])
    layout["xaxis"] |= {"title": {"text": "puts", "font": {"size": 13}}}
    return {"data": data, "layout": layout}
