"""What several commands share: their options, settings from those that were given, and where figures go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from configs.errors import SettingsError
from configs.settings import Settings, load
from pipelines.stack.state import with_stack_addresses
from tidecast.fields import MessageError, job_name


def checked_job(name: str | None) -> str | None:
    """Return the name of a job as a command was given it, unchanged; the callback of such arguments and options.

    Raises:
        SettingsError: no job can have the name; the message says which can.
    """
    try:
        return None if name is None else job_name(name)
    except MessageError as error:
        raise SettingsError(f"{error}. Name a job as its contract does.") from None


Job = Annotated[str, typer.Argument(help="The job's name.", callback=checked_job)]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]
Page = Annotated[Path | None, typer.Option("--page", help="Also write a page that opens offline.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes.")]
Step = Annotated[str | None, typer.Option(help="Length of a step, e.g. 5min; the file's own by default.")]
TimeColumn = Annotated[str | None, typer.Option(help="Name of the time column, if it is unusual.")]
ValueColumn = Annotated[str | None, typer.Option(help="Name of the value column, if there are several.")]
Timezone = Annotated[str, typer.Option(help="Zone of times without an offset, e.g. Europe/Berlin.")]


def command_group(text: str) -> typer.Typer:
    """Make a group of commands that prints its help without a subcommand; `text` is that help."""
    app = typer.Typer(no_args_is_help=True, help=text)
    app.callback()(lambda: None)
    return app


def settings_from_options(**sections: dict[str, Any]) -> Settings:
    """Read the settings with the options of a command on top of them.

    Args:
        sections: values by key, by section, e.g. `replay={"speed": 360, "trace": None}`; None: an option not given.

    Raises:
        SettingsError: a setting or an option is wrong; the message names key, value and remedy.
    """
    given = {name: {k: v for k, v in values.items() if v is not None} for name, values in sections.items()}
    return load(**{name: values for name, values in given.items() if values})


def settings_of_stack(**sections: dict[str, Any]) -> Settings:
    """Read the settings as `settings_from_options` does, and fill in the addresses of the stack that `make up` started.

    Raises:
        SettingsError: a setting or an option is wrong.
    """
    return with_stack_addresses(settings_from_options(**sections))


def split_names(text: str) -> list[str]:
    """Split an option at its commas; blanks around names and empty names are dropped."""
    return [part.strip() for part in text.split(",") if part.strip()]


def choose_names(option: str, text: str, known: Collection[str]) -> list[str]:
    """Split an option at its commas into names of which all are known; all that are where it is empty.

    Raises:
        SettingsError: there is no such name.
    """
    names = split_names(text) or list(known)
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"{option} {unknown[0]!r}: there is no such one; there are {', '.join(known)}.")
    return names


def read_seconds(option: str, text: str) -> list[float]:
    """Read an option of seconds with commas between, each above 0 and at most a day.

    Raises:
        SettingsError: it is something else; the message names the option.
    """
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < seconds <= 86_400 for seconds in found):
        raise SettingsError(f"{option} {text!r}: seconds above 0 and at most a day are expected, as 60,180.")
    return found


def resumed_from(as_json: Path | None, resume: bool) -> Path | None:
    """Return the file that `--resume` goes on from; None without it.

    Raises:
        SettingsError: no file was named by `--json`.
    """
    if resume and as_json is None:
        raise SettingsError("--resume goes on from a file: name it with --json.")
    return as_json if resume else None


def one_model(name: str) -> str:
    """Return the name of a kind of forecaster, unchanged.

    Raises:
        SettingsError: it is not in the catalogue, or "all"; the message lists those that are.
    """
    from models.forecast.selection.catalogue import CATALOGUE, select_kinds

    if name == "all":
        raise SettingsError(f"--model all: one model is expected. Name one of {', '.join(CATALOGUE)}.")
    return select_kinds([name])[0]


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, if that is a terminal, and yield what moves it: called with the share that is done."""
    steps = 1000
    with typer.progressbar(length=steps, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        yield lambda share: bar.update(round(steps * share) - bar.pos)


def print_progress(line: str) -> None:
    """Print a line of progress to stderr, so that stdout has the result only."""
    typer.echo(line, err=True)
