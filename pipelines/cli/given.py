"""What several commands share: settings from the options that were given, and a file for the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from configs.settings import Settings, load

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


def given(**sections: dict[str, Any]) -> Settings:
    """The settings with the options that were given; None means not given."""
    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load(**{name: values for name, values in given.items() if values})


def write(path: Path | None, data: Any) -> None:
    """Write figures where a file was given, in a new folder if need be: they took too long to be lost over that."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1))
