"""Figures in pages: what stands between `<!-- figure: NAME -->` and `<!-- /figure -->` is rendered, never typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipelines.figures.age import find_oldest
from pipelines.figures.form import Figure, FigureError, Finding, read_figure
from pipelines.figures.goals import goals_of
from pipelines.pages.markdown import format_table, format_value

REGION = re.compile(r"<!-- figure: (?P<names>[^>]+?) -->\n.*?<!-- /figure -->", re.DOTALL)
SIGNS = {"within ": "± ", "<=": "≤", ">=": "≥", "== ": ""}
VERDICT = {True: "yes", False: "**no**", None: ""}


def read_figures(folder: Path) -> dict[str, Figure]:
    """Read all figures of a folder, by file name without `.json`.

    Raises:
        FigureError: a file is no figure, see `read_figure`.
    """
    return {path.stem: read_figure(path) for path in sorted(folder.glob("*.json"))}


def list_pages(root: Path) -> list[Path]:
    """Return the paths of the pages that may hold figures: `README.md` and `docs/*.md`."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def render_figures(text: str, figures: Mapping[str, Figure], history: Mapping[str, int]) -> str:
    """Render every region of a page anew: what stands between `<!-- figure: NAMES -->` and `<!-- /figure -->`.

    Args:
        text: of the page, Markdown.
        figures: by name. A region names some, whose rows become one table, or a table in one's data as NAME.KEY.KEY:
            a list of objects, or objects in objects, of which each that holds more than others is a row. NAME#PART
            stands for the rows of one part of a figure, and for where that was measured.
        history: places of commits (`age.read_history`), for the oldest of those that measured a figure.

    Returns:
        The page's text; outside of regions it is unchanged.

    Raises:
        FigureError: a figure is not there, or its data hold no table at that place.
    """
    return REGION.sub(lambda region: _region(region["names"], figures, history), text)


def find_typed_tables(text: str) -> list[str]:
    """List the head lines of tables outside of regions that have a column "measured": they were typed by hand."""
    outside = REGION.sub("", text).splitlines()
    return [
        line for line, below in pairwise(outside) if re.fullmatch(r"\|[-:| ]+\|", below) and "measured" in line.lower()
    ]


def _split(names: str) -> list[str]:
    """What a region names; the keys of a table in the data may have spaces."""
    return [names] if "." in names else names.split()


def _file(name: str) -> str:
    return re.split("[.#]", name)[0]


def _region(names: str, figures: Mapping[str, Figure], history: Mapping[str, int]) -> str:
    if missing := [_file(name) for name in _split(names) if _file(name) not in figures]:
        raise FigureError(f"docs/figures/{missing[0]}.json is not there; its command's --json writes it.")
    if "." in names:
        name, *keys = names.split(".")
        body = format_table(_data(figures[name].data, keys, names))
    else:
        shown = [_part(figures[_file(name)], name) for name in names.split()]
        sources = dict.fromkeys(
            _source(one, history) for one in shown if any(row.measured is not None for row in one.rows)
        )
        body = "\n".join([_rows([row for one in shown for row in one.rows]), "", *sources])
    return f"<!-- figure: {names} -->\n{body}\n<!-- /figure -->"


def _part(figure: Figure, name: str) -> Figure:
    """What a region names: a whole figure, or, as NAME#PART, the rows of one part and its own source."""
    _, of_one, part = name.partition("#")
    if not of_one:
        return figure
    known = goals_of(figure.command)
    whats = known.list_part(part) if known else []
    if not (rows := [row for row in figure.rows if row.what in whats]):
        raise FigureError(f"figure {name}: no row is of this part; it is the first key of where a number lies.")
    found = figure.data.get(part) if isinstance(figure.data, dict) else None
    return replace(figure, rows=rows, data=found, **(found or {}).get("source", {}))


def _rows(rows: list[Finding]) -> str:
    cells = [
        {
            "what": row.what,
            "goal": row.goal and _goal(row.goal),
            "measured": "not measured" if row.measured is None else row.measured,
            "holds": VERDICT[row.holds],
            "n": row.n,
            "interval": row.interval and " to ".join(map(format_value, row.interval)),
        }
        for row in rows
    ]
    return format_table([{key: cell[key] for key in cell if any(one[key] for one in cells)} for cell in cells])


def _goal(text: str) -> str:
    for sign, shown in SIGNS.items():
        text = text.replace(sign, shown)
    return text


def _source(figure: Figure, history: Mapping[str, int]) -> str:
    took = "" if figure.seconds is None else f", {figure.seconds:,.0f} s"
    return f"`{figure.command}`, {figure.date}{_code(figure, history)}, {figure.machine}{took}  "


def _code(figure: Figure, history: Mapping[str, int]) -> str:
    """By which code: that of the oldest commit, how many there are, and whether files differed from them."""
    oldest, many = find_oldest(figure, history), len({one.removesuffix("-dirty") for one in figure.commits})
    if oldest is None:
        return ""
    changed = " with changes" if any(one.endswith("-dirty") for one in figure.commits) else ""
    return f", code of {oldest[:7]}{f' (the oldest of {many} commits)' if many > 1 else ''}{changed}"


def _data(data: Any, keys: list[str], names: str) -> list[dict[str, Any]]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    rows = list(_nested(data)) if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows or not all(isinstance(one, dict) for one in rows):
        raise FigureError(
            f"figure {names}: a list of objects, or objects in objects, is expected in the data; there is "
            f"{type(data).__name__}."
        )
    return rows


def _nested(data: dict[str, Any], *way: str) -> Iterator[dict[str, Any]]:
    """A row of each object that holds more than objects, its keys on the way there in front; where it is of is none."""
    below = {key: one for key, one in data.items() if isinstance(one, dict) and key != "source"}
    if len(below) < len(data.keys() - {"source"}):
        flat = {f"{key}: {name}": value for key, one in below.items() for name, value in one.items()}
        yield {"": ", ".join(way), **{key: value for key, value in data.items() if key not in below}, **flat}
    else:
        for key, one in below.items():
            yield from _nested(one, *way, key)
