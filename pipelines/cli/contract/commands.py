"""`tidecast contract NAME`: what is said of contracts and of what was decided under them, a command each."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from configs.errors import SettingsError
from pipelines.cli.contract.checked import all_contracts, check_file, contract_file, list_problems, list_unkept
from pipelines.cli.contract.compared import compare_contracts
from pipelines.cli.contract.configured import try_in_twin
from pipelines.cli.contract.proposed import propose_from_lake
from pipelines.cli.contract.replayed import replay_recorded
from pipelines.cli.options import command_group, settings_from_options

app = command_group(
    "Check, propose, compare and try contracts, print their schema, and replay decisions that were made under one."
)
app.command("init")(propose_from_lake)
app.command("diff")(compare_contracts)
app.command("try")(try_in_twin)
app.command("replay")(replay_recorded)


@app.command("check")
def check_contract(
    contracts: Annotated[list[str] | None, typer.Argument(help="Jobs, or contracts' files.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All contracts in the folder of contracts.")] = False,
) -> None:
    """Say what is wrong in contracts, line by line, or print what follows from one: paths, scales, boxes, ladder.

    Of a single one, keys of `planning` are told that the policy which is set does not keep to.

    Of several contracts, or all, every problem is a line of its own, with file and line, and the status is 1 if there
    is one.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: none is named, or names and `--all`; there are none; of a single one: there is no such contract,
            no job can have the name, or something in it is wrong (status 2).
    """
    from models.contract.promised.text import describe_terms

    if bool(contracts) == every:
        raise SettingsError("Which contracts? Name jobs or files, as `tidecast contract check orders`, or say --all.")
    if contracts and len(contracts) == 1:
        file = contract_file(contracts[0])
        checked, rates, terms = check_file(file)
        unkept = list_unkept(file, settings_from_options().autoscaler.policy)
        print(*describe_terms(checked, rates, terms), *unkept, sep="\n")
        return
    names = contracts or all_contracts(settings_from_options())
    problems = list_problems(names)
    print(*problems, sep="\n", end="\n" * bool(problems))
    many, found = len(names), len(problems)
    print(f"{many} contract{'s' * (many != 1)}, {found or 'no'} problem{'s' * (found != 1)}")
    if problems:
        raise typer.Exit(1)


@app.command("schema")
def print_schema() -> None:
    """Print the JSON schema of contracts, by which an editor, or a team's own checks, know keys, bounds and words."""
    from configs.schema import contract_schema

    print(json.dumps(contract_schema(), indent=2))
