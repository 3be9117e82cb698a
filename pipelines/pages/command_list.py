"""Every command with its arguments and options, from the tree that understands command lines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from pipelines.cli.app import app

_SECTION = re.compile(r"\n\n(Args|Returns|Raises):\n.*", re.DOTALL)


def render_commands() -> str:
    """Return a section per command: what it does, and each argument and option with its default."""
    return "\n\n".join(_section(words, command) for words, command in _walk(["tidecast"], typer.main.get_command(app)))


# Typer brings a click of its own, whose types have no public name.
def _walk(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    below = getattr(command, "commands", {})
    if not below or getattr(command, "invoke_without_command", False):
        yield words, command
    for name, one in below.items():
        yield from _walk([*words, name], one)


def _section(words: list[str], command: Any) -> str:
    said = _SECTION.sub("", inspect.cleandoc(command.help or ""))
    lines = [line for line in map(_parameter, command.params) if line]
    parts = [f"### `{' '.join(words)}`", said.replace("\n\n", "\n").strip(), "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def _parameter(one: Any) -> str:
    """A line for an argument or option; "" for `--help`."""
    if one.name == "help":
        return ""
    argument = one.param_type_name == "argument"
    name = (one.name or "").upper() if argument else ", ".join((*one.opts, *one.secondary_opts))
    said = getattr(one, "help", None) or ""
    default = None if callable(one.default) or one.default in (None, False, True, (), "") else one.default
    notes = [said.rstrip("."), "" if default is None or "default" in said else f"{default} unless given"]
    told = "; ".join(note for note in [*notes, "may be left out" * (argument and not one.required)] if note)
    return f"- `{name}`" + (f": {told}" if told else "")
