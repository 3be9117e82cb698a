"""What an earlier run of a command has written to its `--json` file, to go on from: of the same question alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from configs.errors import SettingsError
from pipelines.figures.form import read_figure

UNKNOWN = "unknown"


def read_resumed(file: Path | None, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the figure that a command goes on from; {} where no file is named, or none is there.

    Args:
        file: of the figure.
        asked: what its numbers hang on, as JSON values, by the keys under which the data hold it.

    Raises:
        SettingsError: the figure is of something else, or does not say of what, as of an earlier release or of another
            command.
        FigureError: the file holds no figure.
        OSError: it cannot be read.
    """
    if file is None or not file.exists():
        return {}
    data = read_figure(file).data
    held = data if isinstance(data, dict) else {}
    refuse_other(file, {name: held.get(name, UNKNOWN) for name in asked}, asked)
    return held


def refuse_other(file: Path, held: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to go on from figures of something else than what is asked for; dicts are compared value by value.

    Raises:
        SettingsError: a value differs, or only one of both has it; it is named by its keys, as in "setup.executors".
    """
    known, wanted = dict(_leaves(held)), dict(_leaves(asked))
    for name in {**wanted, **known}:
        if known.get(name, UNKNOWN) != wanted.get(name, UNKNOWN):
            raise SettingsError(
                f"{file} holds figures with {name} {known.get(name, UNKNOWN)}, and {wanted.get(name, 'none')} is asked "
                "for. Name another --json file, or leave --resume out."
            )


def _leaves(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that is no dict, and where it lies: ("setup.executors", 4)."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value
