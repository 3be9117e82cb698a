"""The pages that are lists: pools, models, backfills, topologies; their rows are drawn by their scripts."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.console.pages import COUNTS, PROBLEM, head, nav, page
from pipelines.html.document import NOWRAP, NUMBER, PLAIN, table

Columns = Sequence[tuple[str, str]]
POOL: Columns = (
    ("Job", PLAIN), ("Wants", NUMBER), ("Has", NUMBER), ("Granted", NUMBER), ("Replays", NUMBER), ("Weight", NUMBER),
    ("Floor", NUMBER), ("Budget left", NUMBER), ("Why", PLAIN),
)  # fmt: skip
"""Titles and kinds of the columns of a pool; those of the other pages follow."""
BACKFILLS: Columns = (
    ("Job", PLAIN), ("Backfill", PLAIN), ("State", PLAIN), ("Done", NUMBER), ("Records/s", NUMBER),
    ("Executors", NUMBER), ("Corrects", PLAIN), ("Deadline", PLAIN), ("Done at", PLAIN),
)  # fmt: skip
MODELS: Columns = (
    ("Job", PLAIN), ("Model", NOWRAP), ("State", PLAIN), ("Champion", NOWRAP), ("Measured error", NUMBER),
    ("Challenger", PLAIN), ("Versions", NUMBER), ("Served last", PLAIN), ("Drift", NOWRAP),
)  # fmt: skip
TOPOLOGY: Columns = (
    ("Query", PLAIN), ("State", PLAIN), ("Operators", PLAIN), ("Cluster", NOWRAP), ("Executors", NUMBER),
    ("Latency", NUMBER), ("Moves", NUMBER),
)  # fmt: skip


def pools_page() -> str:
    """Return the page of all pools."""
    about = "Executors. Floors first, then what saves most by the weights; replays have what is left."
    none = "No pool is known yet. A file in the folder <code>pools</code>, beside that of the contracts, makes one."
    parts = '<p class="stands"></p><p class="short"></p><ul class="notes"></ul>'
    return _parts("pools", about, "pool", parts, POOL, none)


def topologies_page() -> str:
    """Return the page of all topologies."""
    about = (
        "Jobs that run in blocks. <code>tidecast plan</code> plans one, the DAG plan_placement each morning anew those "
        "that were begun."
    )
    none = "There is no file in <code>configs/topologies</code>."
    return _parts(
        "topologies",
        about,
        "topology",
        '<p class="stands"></p><p class="short"></p><p class="advice"></p>',
        TOPOLOGY,
        none,
    )


def backfills_page() -> str:
    """Return the page of all backfills."""
    about = (
        "Records/s: read, of those admitted. Executors: beyond the live job's, or in an application of its own. "
        "Corrects: in UTC."
    )
    none = "No backfill is known yet. <code>tidecast backfill</code> or the DAG backfill orders one."
    return _rows("backfills", BACKFILLS, none, about)


def models_page() -> str:
    """Return the page of all registered models."""
    about = "Measured error: sum of misses over sum of the load, of the steps that a version forecast while it served."
    return _rows("models", MODELS, "No model is registered yet. The DAG retrain_forecaster makes one.", about)


def _rows(name: str, columns: Columns, none: str, about: str = "") -> str:
    """A page of one table."""
    said = f'<p class="about">{about}</p>' if about else ""
    body = f"""{head(name.title(), nav("./", name), COUNTS)}
{PROBLEM}
{said}
{_table(columns, f'id="{name}" class="whole rows folding"')}
<p id="none" class="about" hidden>{none}</p>"""
    return page(name.title(), body, name, "./")


def _parts(name: str, about: str, part: str, texts: str, columns: Columns, none: str) -> str:
    """A page of sections, each with texts and a table, made from a template of the name `part`."""
    body = f"""{head(name.title(), nav("./", name), COUNTS)}
{PROBLEM}
<p class="about">{about}</p>
<div id="{name}"></div>
<template id="{part}"><section><h2></h2>{texts}
{_table(columns, 'class="whole rows folding"')}</section></template>
<p id="none" class="about" hidden>{none}</p>"""
    return page(name.title(), body, name, "./")


def _table(columns: Columns, marks: str) -> str:
    return table([title for title, _ in columns], [kind for _, kind in columns], [], marks)
