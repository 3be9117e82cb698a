"""What several commands share: their options, settings from those that were given, and where figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from configs.settings import Settings, load
from pipelines.stack.state import addressed

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]
Page = Annotated[Path | None, typer.Option("--page", help="Also write a page that opens offline.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes.")]
Step = Annotated[str | None, typer.Option(help="Length of a step, e.g. 5min; the file's own by default.")]
TimeColumn = Annotated[str | None, typer.Option(help="Name of the time column, if it is unusual.")]
ValueColumn = Annotated[str | None, typer.Option(help="Name of the value column, if there are several.")]
Timezone = Annotated[str, typer.Option(help="Of local times without an offset, e.g. Europe/Berlin.")]


def noun(text: str) -> typer.Typer:
    """A group of commands, also where it has a single one; `text` is its help."""
    app = typer.Typer(no_args_is_help=True, help=text)
    app.callback()(lambda: None)
    return app


def given(**sections: dict[str, Any]) -> Settings:
    """The settings with the options that were given; None means not given."""
    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load(**{name: values for name, values in given.items() if values})


def here(**sections: dict[str, Any]) -> Settings:
    """The same for a command that works on what runs: addresses left open are those of the stack on this `var`."""
    return addressed(given(**sections))


def listed(text: str) -> list[str]:
    """The names in an option, which commas separate."""
    return [part.strip() for part in text.split(",") if part.strip()]


def tell(line: str) -> None:
    """Print how far a long command is, beside its output."""
    typer.echo(line, err=True)
