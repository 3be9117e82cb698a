"""`tidecast contract`: what one may say, what it is understood to say, and whether a control trace follows from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import CorrectableError, SettingsError
from pipelines.cli.options import checked_job, command_group, settings_from_options

app = command_group(
    "Check a job's contract, print the schema of contracts, and replay decisions that were made under one."
)


class TraceFileError(CorrectableError):
    """A file that is no control trace; the message names file, line and remedy."""


@app.command("check")
def check_contract(contract: Annotated[str, typer.Argument(help="A job, or a contract's file.")]) -> None:
    """Say what is wrong in a contract, line by line, or print what follows from it: paths, scales, boxes, ladder.

    Raises:
        SettingsError: there is no such contract, no job can have the name, or something in it is wrong (status 2).
    """
    from configs.contract import load_contract
    from configs.lines import read_lined
    from models.contract.declared import TermsError
    from models.contract.promised.text import describe_terms
    from models.policy.core.sustained import checked_terms

    file = Path(contract)
    if file.suffix not in (".yaml", ".yml"):
        file = settings_from_options().contracts_dir / f"{checked_job(contract)}.yaml"
    elif file.suffix == ".yml" or not file.is_file():
        raise SettingsError(f"{file}: no contract's file. Contracts are files <job>.yaml; name one, or a job.")
    checked = load_contract(file.stem, file.parent)
    try:
        rates, terms = checked_terms(checked)
    except TermsError as error:
        told = str(error).removeprefix("Terms: ")
        key = re.match(r"[\w.]*", told)
        at = read_lined(file.read_text()).line_of(["backpressure", *(key[0].split(".") if key else [])])
        raise SettingsError(f"{file.name}, line {at}: backpressure.{told}") from None
    print(*describe_terms(checked, rates, terms), sep="\n")


@app.command("schema")
def print_schema() -> None:
    """Print the JSON schema of contracts, by which an editor, or a team's own checks, know keys, bounds and words."""
    from configs.schema import contract_schema

    print(json.dumps(contract_schema(), indent=2))


@app.command("replay")
def replay_trace(
    trace: Annotated[Path, typer.Argument(help="A control trace: JSON lines, header first.")],
    tolerance: Annotated[
        float, typer.Option(min=0.0, max=0.1, help="Relative; 0 on the platform that wrote it, 1e-9 on others.")
    ] = 0.0,
) -> None:
    """Compute every control of a trace again from its logged signals; all must agree, to the last bit by default.

    Prints how many intervals agree, status 0, or the first value that differs with its line, status 1.

    Raises:
        TraceFileError: the file cannot be read, or a line of it is no such line (status 2).
    """
    from models.contract.trace import ControlTraceError, replay

    seen = 0

    def lines() -> Iterator[str]:
        nonlocal seen
        with trace.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                seen += 1
                yield line.rstrip("\n")

    try:
        found = replay(lines(), tolerance)
    except ControlTraceError as error:
        raise TraceFileError(f"{trace}, {error}.") from None
    except UnicodeDecodeError as error:
        raise TraceFileError(f"{trace}, after line {seen}: no text: {error}. Name a control trace.") from None
    except OSError as error:
        raise TraceFileError(f"{trace}: cannot be read: {error}. Name a control trace.") from None
    if found is None:
        print(f"{trace}: {seen - 1} intervals, each control as logged")
        return
    print(f"{trace}, line {found.line}: {found.field} is logged as {found.logged!r}, computed as {found.recomputed!r}")
    raise SystemExit(1)
