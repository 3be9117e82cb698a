"""The settings as tables, a section each: names, defaults and meanings from `configs/default.yaml`, units by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from configs.settings import DEFAULT_FILE, Settings
from pipelines.pages.markdown import format_table

UNITS = {
    "s": "s", "h": "hours", "hours": "hours", "days": "days", "minutes": "minutes", "ms": "ms", "rps": "records/s",
    "bytes": "bytes", "steps": "steps",
}  # fmt: skip
"""Unit by the last word of a setting's name."""
_COMMENT = re.compile(r"(?:^|\s)#\s?(.*)$")


class StatedSetting(NamedTuple):
    """A setting as `default.yaml` states it.

    Attributes:
        path: keys from the section on.
        default: YAML text.
        meaning: its comment; "" without one.
    """

    path: tuple[str, ...]
    default: str
    meaning: str

    @property
    def unit(self) -> str:
        """Unit by the name; "" for a name without one."""
        *_, last = self.path[-1].split("_")
        return UNITS.get(last, "")


def read_settings() -> list[StatedSetting]:
    """Read every setting of `configs/default.yaml` in its order; a mapping on one line is one setting."""
    text = DEFAULT_FILE.read_text(encoding="utf-8")
    lines, root = text.splitlines(), yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    nodes = list(_walk(root, ()))
    ends = [node.start_mark.line for _, node, _ in nodes[1:]] + [len(lines)]
    found = []
    for (path, key, value), end in zip(nodes, ends, strict=True):
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            continue  # a section: its keys are settings of their own
        told = [_COMMENT.search(line) for line in _until_blank(lines[key.start_mark.line : end])]
        default = " ".join(text[value.start_mark.index : value.end_mark.index].split())
        found.append(StatedSetting(path, default, " ".join(one[1].strip() for one in told if one)))
    return found


def _walk(node: yaml.MappingNode, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], yaml.Node, yaml.Node]]:
    for key, value in node.value:
        yield (*path, key.value), key, value
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _walk(value, (*path, key.value))


def _until_blank(lines: list[str]) -> list[str]:
    return lines[: next((number for number, line in enumerate(lines) if not line.strip()), len(lines))]


def render_settings() -> str:
    """Return a table of settings for each section of the settings, after what the section is.

    Raises:
        RuntimeError: a setting has no comment that says what it means.
    """
    settings = read_settings()
    if silent := [".".join(one.path) for one in settings if not one.meaning]:
        raise RuntimeError(f"configs/default.yaml: {', '.join(silent)}: a comment has to say what it means.")
    sections: dict[str, list[StatedSetting]] = {}
    for one in settings:
        sections.setdefault(one.path[0] if len(one.path) > 1 else "", []).append(one)
    return "\n\n".join(f"{_head(name)}\n\n{_table(rows)}" for name, rows in sections.items())


def _head(section: str) -> str:
    if not section:
        return "## At the top"
    form = Settings.model_fields[section].annotation
    said = (inspect.getdoc(form) or "").partition("\n\n")[0].replace("\n", " ")
    return f"## `{section}`\n\n{said}"


def _table(rows: list[StatedSetting]) -> str:
    return format_table([
        {"setting": f"`{'.'.join(one.path)}`", "default": f"`{one.default}`", "unit": one.unit, "says": one.meaning}
        for one in rows
    ])  # fmt: skip
