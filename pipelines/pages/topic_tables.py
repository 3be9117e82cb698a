"""Topics and the rights on them as tables, from `topics.yaml` beside this file and the settings' retention."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from configs.files import QUICK
from configs.sections import Retention
from pipelines.pages.markdown import format_table
from tidecast.connection.transport import TOPICS


@cache
def read_topics() -> dict[str, Any]:
    """Read `topics.yaml`: `topics` by name, and the list of `rights`.

    Raises:
        RuntimeError: it does not name just the topics that are created.
    """
    content: dict[str, Any] = yaml.load((Path(__file__).parent / "topics.yaml").read_text(encoding="utf-8"), QUICK)
    if differ := set(content["topics"]) ^ set(TOPICS):
        raise RuntimeError(f"pipelines/pages/topics.yaml: {', '.join(sorted(differ))}: only here, or only created.")
    return content


def render_topics() -> str:
    """Return the table of all topics: key, message, what a record says, how long it stays, who writes and who reads."""
    content, kept = read_topics(), Retention()
    rows = []
    for name, one in content["topics"].items():
        hours = getattr(kept, name, None)
        rows.append({
            "topic": f"`{name}`",
            "key": one["key"],
            "message": one.get("message", "JSON"),
            "a record says": one["record"],
            "kept": "newest of each key" if hours is None else f"{hours:g} h",
            "written by": one.get("writes") or _those("writes", name),
            "read by": one.get("reads") or _those("reads", name),
        })  # fmt: skip
    return format_table(rows)


def _those(does: str, topic: str) -> str:
    return ", ".join(one["name"] for one in read_topics()["rights"] if topic in one[does])


def render_rights() -> str:
    """Return the table of who needs to read and to write which topics."""
    return format_table([
        {"who": one["who"], "reads": _names(one["reads"]), "writes": _names(one["writes"]), "and": one.get("also")}
        for one in read_topics()["rights"]
    ])  # fmt: skip


def _names(topics: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in topics) or "nothing"
