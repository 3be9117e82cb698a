"""References in pages: what is between `<!-- reference: NAME -->` and `<!-- /reference -->` follows from the code."""

from __future__ import annotations

import re
from collections.abc import Callable

from models.alerts.metric import METRICS
from pipelines.figures.form import FigureError
from pipelines.pages.command_list import render_commands
from pipelines.pages.lake_tables import render_tables
from pipelines.pages.markdown import format_table
from pipelines.pages.setting_tables import render_settings
from pipelines.pages.topic_tables import render_rights, render_topics

REGION = re.compile(r"<!-- reference: (?P<name>[^>]+?) -->\n.*?<!-- /reference -->", re.DOTALL)


def render_metrics() -> str:
    """Return the table of all metrics that `tidecast metrics` exposes."""
    rows = ((f"`{one.name}`", one.kind, ", ".join(one.labels), one.text) for one in METRICS)
    return format_table([dict(zip(("metric", "kind", "labels", "says"), row, strict=True)) for row in rows])


REFERENCES: dict[str, Callable[[], str]] = {
    "settings": render_settings,
    "commands": render_commands,
    "topics": render_topics,
    "rights": render_rights,
    "tables": render_tables,
    "metrics": render_metrics,
}
"""What each reference is rendered by, as Markdown."""


def render_references(text: str) -> str:
    """Render every reference of a page anew; outside of these regions the text is unchanged.

    Raises:
        FigureError: there is no reference of a region's name.
        RuntimeError: what is rendered lacks its words: a setting or a field without a meaning.
    """
    return REGION.sub(lambda region: _region(region["name"]), text)


def _region(name: str) -> str:
    if name not in REFERENCES:
        raise FigureError(f"<!-- reference: {name} -->: there is none; there are {', '.join(REFERENCES)}.")
    return f"<!-- reference: {name} -->\n{REFERENCES[name]()}\n<!-- /reference -->"
