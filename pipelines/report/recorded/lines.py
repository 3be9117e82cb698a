"""Files of a run's folder, read with errors that name the file and the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from configs.errors import CorrectableError


class RunError(CorrectableError, RuntimeError):
    """A run's folder that cannot be read; the message names the file and the remedy."""


def json_object(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file.

    Raises:
        RunError: the file is missing or not JSON.
        TypeError: it holds something else than an object.
    """
    try:
        return dict(json.loads(existing(path).read_text()))
    except ValueError as error:
        raise RunError(f"{path}: not JSON: {error}") from None


def existing(path: Path) -> Path:
    """Return the path if there is something at it.

    Raises:
        RunError: there is nothing.
    """
    if not path.exists():
        raise RunError(
            f"{path}: no such file. A run writes it; did this one end early, or is {path.parent} no run's folder?"
        )
    return path


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines, in order; a last line cut off by a killed writer is dropped.

    Raises:
        RunError: the file is missing, or another line is not JSON.
        OSError, ValueError: the file cannot be read, or is no UTF-8.
    """
    rows = []
    *lines, cut = existing(path).read_text().split("\n")  # at no other ends of lines: JSON may hold those
    for number, line in enumerate([*lines, cut] if cut else lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if number > len(lines):
                break
            raise RunError(f"{path}:{number}: not JSON: {error}") from None
    return rows
