"""A section of a YAML file of its own, whose errors are told with their lines."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from configs.bounds import Section, describe_errors
from configs.errors import SettingsError
from configs.lines import LinedYaml, LinesError, read_lined

S = TypeVar("S", bound=Section)


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
        raise SettingsError(
            f"{path.name}, line 1: {read.data!r} is not a mapping of keys to values. Begin with {begin}."
        )
    try:
        return form.model_validate(read.data), read
    except ValidationError as error:
        told = describe_errors(error, listed, root, read.line_of)
        raise SettingsError("\n".join(f"{path.name}, {line}" for line in told)) from None
