"""What was asked of a part of the pipeline and how far it holds: `asked.yaml`, answered by figures, in pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from configs.files import QUICK
from pipelines.figures.form import Figure, FigureError, Finding
from pipelines.figures.goals import goals_of
from pipelines.pages.markdown import format_table, format_value

REGION = re.compile(r"<!-- asked: (?P<name>[^>]+?) -->\n.*?<!-- /asked -->", re.DOTALL)


def render_asked(text: str, figures: Mapping[str, Figure]) -> str:
    """Render what stands between `<!-- asked: NAME -->` and `<!-- /asked -->` anew, a table of `asked.yaml`.

    Args:
        text: of a page, Markdown.
        figures: by name.

    Raises:
        FigureError: there is no such table, or a figure that it names is missing.
    """
    return REGION.sub(lambda region: _region(region["name"], figures), text)


def answer(entry: Mapping[str, Any], figures: Mapping[str, Figure]) -> str:
    """Say whether all rows with a goal that answer an entry hold, which do not, and which were not measured.

    Args:
        entry: of `asked.yaml`: `rows` (NAME or NAME#PART of figures), of which `only` those whose text begins so count,
            and `open`, what no figure tells, in words. Where a figure has no such row, nothing was measured.
        figures: by name.

    Raises:
        FigureError: a figure is missing.
    """
    missed, unknown = list[str](), list[str]()
    for name in entry.get("rows", []):
        part = name.partition("#")[2]
        judged = [row for row in _judged(name, figures) if row.what.startswith(entry.get("only", ""))]
        of = f" ({part})" if part else ""
        missed += [f"{row.what}{of}: {format_value(row.measured)}" for row in judged if row.holds is False]
        unknown += [f"{row.what}{of}" for row in judged if row.measured is None] if judged else [part or name]
    unknown += entry.get("open", [])
    parts = [f"**no**: {'; '.join(missed)}" if missed else "", f"not measured: {'; '.join(unknown)}" if unknown else ""]
    return ". ".join(filter(None, parts)) or "yes"


@cache
def _read() -> dict[str, list[dict[str, Any]]]:
    content: dict[str, list[dict[str, Any]]] = yaml.load(
        (Path(__file__).parent / "asked.yaml").read_text(encoding="utf-8"), QUICK
    )
    return content


def _region(name: str, figures: Mapping[str, Figure]) -> str:
    if name not in _read():
        raise FigureError(f"<!-- asked: {name} -->: asked.yaml has none; there are {', '.join(_read())}.")
    rows = [{"asked": one["what"], "at least": one["least"], "holds": answer(one, figures)} for one in _read()[name]]
    return f"<!-- asked: {name} -->\n{format_table(rows)}\n<!-- /asked -->"


def _judged(name: str, figures: Mapping[str, Figure]) -> list[Finding]:
    file, _, part = name.partition("#")
    if file not in figures or (known := goals_of(figures[file].command)) is None:
        raise FigureError(f"{name}: docs/figures/{file}.json is not there, or its command is not in goals.yaml.")
    return [row for row in known.fill_rows(figures[file].data, part) if row.goal is not None]
