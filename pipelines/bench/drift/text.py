"""The figures of the drift study as text."""

from __future__ import annotations

from typing import Any

from pipelines.bench.forecast.breaks import CHOSEN_ON, SHAPES, WITHIN

_WIDTHS = (14, 19, 8, 8, 11, 8, *(max(len(shape), 6) + 2 for shape in SHAPES), 8)


def table(found: dict[str, Any]) -> str:
    """Every detector and series, the pooled figures, and the operating curve."""
    head = ("detector", "series", "months", "alarms", "per month", "found", *SHAPES, "delay")
    lines = [
        f"Alarms: drifts reported where nothing was changed. Found: share of changes by +30 % or -30 % reported within "
        f"{WITHIN} steps;",
        "then by shape. Delay: steps until the report, in the median. What is served is 'all'.",
        "",
        _line(head),
    ]
    for name, pooled in found["pooled"].items():
        rows = [row for row in found["rows"] if row["detector"] == name]
        lines += [_line((name, row["series"], *_cells(row, row["found"] / max(row["changes"], 1)))) for row in rows]
        by_shape = {shape: sum(row["by_shape"][shape] for row in rows) / len(rows) for shape in SHAPES}
        lines += [_line((name, "pooled", *_cells({**pooled, "by_shape": by_shape}, pooled["share_found"]))), ""]
    lines += [f"Operating curve of both detectors on the load; settings were chosen on {', '.join(CHOSEN_ON)}.", ""]
    parts = ("chosen_on", "others", "pooled")
    lines.append(_line(("least change", *(f"{part}: {what}" for part in parts for what in ("per month", "found"))), 22))
    for point in found["curve"]:
        figures = [
            text
            for part in parts
            for text in (f"{point[part]['false_alarms_per_month']:.2f}", f"{point[part]['share_found']:.0%}")
        ]
        lines.append(_line((f"{point['least']:g}", *figures), 22))
    return "\n".join(lines)


def _cells(row: dict[str, Any], share: float) -> tuple[str, ...]:
    delays = row.get("delays")
    delay = row["delay_median"] if delays is None else (sorted(delays)[len(delays) // 2] if delays else None)
    per_month = row["false_alarms"] / row["months"]
    shapes = [f"{row['by_shape'][shape]:.0%}" for shape in SHAPES]
    return (
        f"{row['months']:.2f}",
        str(row["false_alarms"]),
        f"{per_month:.2f}",
        f"{share:.0%}",
        *shapes,
        "-" if delay is None else f"{delay:.0f}",
    )


def _line(cells: tuple[str, ...], width: int | None = None) -> str:
    widths = _WIDTHS if width is None else (width,) * len(cells)
    return "".join(f"{cell:<{size}}" for cell, size in zip(cells, widths, strict=True)).rstrip()
