"""YAML files with the line of every key, so that what is wrong in one is told where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from configs.bounds import Key, Section, describe_errors
from configs.errors import SettingsError

S = TypeVar("S", bound=Section)
QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads what lies in this repository in C, where PyYAML was built with it; in Python it takes several times as long. No
person's file: it ends the process where brackets are nested too deep."""
MOST = 100_000
"""Keys and items of a file, those of an alias counted wherever it stands: few lines can make billions of them."""


class LinesError(ValueError):
    """A text that is not YAML, or holds a key twice; the message begins with the line."""


@dataclass(frozen=True)
class LinedYaml:
    """What a YAML text says, and the line of every key and list item in it by its place, the first line being 1."""

    data: Any
    lines: dict[tuple[int | str, ...], int] = field(default_factory=dict)

    def line_of(self, key: Key) -> int:
        """Return the line of a key, or of the nearest section around it where the file does not have it."""
        place = tuple(key)
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_lined(text: str) -> LinedYaml:
    """Read the first document of a YAML text.

    Raises:
        LinesError: it is not YAML, has over MOST (100,000) keys and items, or a mapping has a key twice, of which YAML
            would silently take the second.
        RecursionError: it is nested too deep.
    """
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LinesError(f"line {line}: not YAML: {error.reason}. Mend the line.") from None
    try:
        node = loader.get_single_node()
        if node is None:
            return LinedYaml(None)
        _refuse_twice(node)
        if next(islice(_places(node, (), frozenset()), MOST, None), None) is not None:
            raise LinesError(f"line 1: over {MOST:,} keys and items, with those of each alias. Use fewer aliases.")
        data = loader.construct_document(node)
    except yaml.YAMLError as error:  # whose own words show what stands there, as a secret that begins with `!` or `*`
        mark = getattr(error, "problem_mark", None)
        line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        raise LinesError(
            f"line {line}: not YAML at column {column}. Quote a text that begins with a sign, as ! or *, and a number "
            "or day that is none; close each quote and bracket."
        ) from None
    finally:
        loader.dispose()
    return LinedYaml(data, dict(_places(node, (), frozenset())))


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Says where a value stands that is not what it looks like, as a day that no month has."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return what a node says.

        Raises:
            yaml.YAMLError: it says nothing; the error has its place.
        """
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, IndexError, OverflowError):
            raise yaml.constructor.ConstructorError(problem_mark=node.start_mark) from None


def _places(
    node: yaml.Node, place: tuple[int | str, ...], around: frozenset[int]
) -> Iterator[tuple[tuple[int | str, ...], int]]:
    """Places and lines of a document that was constructed: merged keys stand in their mapping, the own ones last."""
    if id(node) in around:  # an alias of what it stands in
        return
    within = around | {id(node)}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = (*place, _name(key))
            yield at, key.start_mark.line + 1
            yield from _places(value, at, within)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*place, number), value.start_mark.line + 1
            yield from _places(value, (*place, number), within)


def _name(key: yaml.Node) -> str:
    """A key's text; none of one that is no text, which no mapping can have, and whose own may be endless."""
    return str(key.value) if isinstance(key, yaml.ScalarNode) else ""


def _refuse_twice(root: yaml.Node) -> None:
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in node.value:
                name, line = _name(key), key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode) and name in lines:
                    raise LinesError(f"line {line}: {name} is stated in line {lines[name]} already. Delete one.")
                lines[name] = line
                waiting.append(value)


def read_section(path: Path, form: type[S], listed: str, root: str, begin: str) -> tuple[S, LinedYaml]:
    """Read a file and check its keys and values one by one; what does not go together is the caller's to find.

    Args:
        path: of the file, which is there.
        form: of its section.
        listed: the page that lists every key.
        root: what to call the whole.
        begin: its first line, for a file that is none.

    Raises:
        SettingsError: it cannot be read or is not YAML, or a key or value is wrong; the message names file, line, value
            and remedy.
    """
    try:
        read = read_lined(path.read_text())
    except LinesError as error:
        raise SettingsError(f"{path.name}, {error}") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    if not isinstance(read.data, dict):
        found = "a list" if isinstance(read.data, list) else "one value"  # which may be a secret
        what = "an empty file" if read.data is None else found
        raise SettingsError(f"{path.name}, line 1: {what} is not a mapping of keys to values. Begin with {begin}.")
    try:
        return form.model_validate(read.data), read
    except ValidationError as error:
        told = describe_errors(error, listed, root, read.line_of)
        raise SettingsError("\n".join(f"{path.name}, {line}" for line in told)) from None
