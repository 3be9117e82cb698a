"""The two arms of raises in lines for a terminal."""

from __future__ import annotations

from typing import Any

from pipelines.bench.raises.summary import ARMS
from pipelines.html.columns import of_rows


def format_raises(figures: dict[str, Any]) -> str:
    """Format the phases of both arms as a table, with ratios and predictions below.

    Args:
        figures: of `summarise_sessions`.
    """
    lines = of_rows([{name: _said(value) for name, value in row.items()} for row in figures["phases"]])
    for name in ("registered", "useful"):
        if ratio := figures[name]["ratio"]:
            lines.append(f"{name}, ours ÷ stock: p50 {ratio['p50']:.2f}, p95 {ratio['p95']:.2f}")
    for arm in ARMS:
        count, lost, predicted = figures["raises"][arm], figures["given_up"][arm], figures["predicted"][arm]
        within = "none was judged" if predicted["within"] is None else f"{predicted['within']:.0%} of {predicted['n']}"
        lines.append(f"{arm}: {count} raises, {lost} given up; within the 90 % interval predicted before: {within}")
    return "\n".join(lines)


def _said(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value if value is not None else "")
