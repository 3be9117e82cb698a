"""What several commands share: settings from the options that were given, and where figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from configs.settings import Settings, load
from pipelines.stack.state import addressed

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


def given(**sections: dict[str, Any]) -> Settings:
    """The settings with the options that were given; None means not given."""
    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load(**{name: values for name, values in given.items() if values})


def here(**sections: dict[str, Any]) -> Settings:
    """The same for a command that works on what runs: addresses left open are those of the stack on this `var`."""
    return addressed(given(**sections))
