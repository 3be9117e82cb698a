"""Pieces of Plotly figures: lines, marks, stacked rows over one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Chart = dict[str, Any]
"""A Plotly figure as a plain dict; colours are names such as `@arrival` or `@forecast/20` (per cent of opacity)."""

_GAP = 0.09  # between rows, share of the height; their titles stand in it


def line(
    x: Any, y: Any, name: str, color: str, *,
    width: float = 1.8, shape: str = "linear", dash: str = "solid", fill: str | None = None,
) -> Chart:  # fmt: skip
    """Return a Plotly line; hovering shows its value. `fill` is the colour of the area down to zero."""
    trace = {
        "type": "scatter", "mode": "lines", "x": values(x), "y": values(y), "name": name, "hovertemplate": "%{y:.4~g}",
        "line": {"color": color, "width": width, "shape": shape, "dash": dash},
    }  # fmt: skip
    return {**trace, "fill": "tozeroy", "fillcolor": fill} if fill else trace


def marks(x: Any, y: Any, name: str, symbol: str, color: str, text: Any = None) -> Chart:
    """Return Plotly symbols at single points; hovering shows `text` (one per point), or the value where it is None."""
    return {
        "type": "scatter", "mode": "markers", "x": values(x), "y": values(y), "name": name,
        "marker": {"symbol": symbol, "color": color, "size": 11, "line": {"color": "@panel", "width": 1}},
        "text": values(text) or None, "hovertemplate": "%{text}" if text is not None else "%{y:.4~g}",
    }  # fmt: skip


def silent(trace: Chart) -> Chart:
    """Return the Plotly trace without hover text and without a legend entry."""
    return {**trace, "hoverinfo": "skip", "hovertemplate": None, "showlegend": False}


def stacked_rows(titles: list[tuple[str, float]]) -> Chart:
    """Return a Plotly layout of rows above one another that share the x axis: `yaxis`, `yaxis2` and so on from the top.

    Args:
        titles: (title with unit, share of the height) of each row; at least one, shares sum to 1.
    """
    layout: Chart = {
        "hovermode": "x unified", "margin": {"l": 46, "r": 14, "t": 58, "b": 48}, "annotations": [], "bargap": 0,
        "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 1, "yanchor": "top", "itemwidth": 30},
        "xaxis": {"zeroline": False, "anchor": f"y{len(titles)}" if len(titles) > 1 else "y"},
    }  # fmt: skip
    usable, top = 1 - _GAP * (len(titles) - 1), 1.0
    for i, (title, share) in enumerate(titles, 1):
        bottom = max(0.0, top - usable * share)
        layout["yaxis" if i == 1 else f"yaxis{i}"] = {"domain": [bottom, top], "zeroline": False, "rangemode": "tozero"}
        layout["annotations"].append({
            "text": title, "xref": "paper", "yref": "paper", "x": 0, "y": top, "xanchor": "left", "yanchor": "bottom",
            "yshift": 3, "showarrow": False, "font": {"size": 12, "color": "@muted"},
        })  # fmt: skip
        top = bottom - _GAP
    return layout


def values(column: Any) -> list[Any]:
    """Return a column as JSON values: numbers rounded to 4 decimals, text, None for what is missing; [] for None."""
    if column is None:
        return []
    return [None if pd.isna(v) else v if isinstance(v, str) else round(float(v), 4) for v in column]


def ranges(flags: Any) -> list[tuple[int, int]]:
    """Return the stretches `[first, last)`, as index pairs in order, in which a column of flags is set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, dtype=np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
