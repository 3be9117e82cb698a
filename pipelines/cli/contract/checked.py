"""Contracts as files that are checked: one that is named, or all of a team's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.cli.options import checked_job, settings_from_options

if TYPE_CHECKING:
    from configs.contract import Contract
    from models.contract.promised.derive import SustainedRates
    from models.contract.terms import Terms


def contract_file(contract: str) -> Path:
    """Return the file of a contract that is named by its job, or by its file.

    Raises:
        SettingsError: no job can have the name, or no contract's file has.
    """
    file = Path(contract)
    if file.suffix not in (".yaml", ".yml"):
        return settings_from_options().contracts_dir / f"{checked_job(contract)}.yaml"
    if file.suffix == ".yml" or not file.is_file():
        raise SettingsError(f"{file}: no contract's file. Contracts are files <job>.yaml; name one, or a job.")
    return file


def check_file(file: Path) -> tuple[Contract, SustainedRates, Terms]:
    """Read a contract's file, and compile what follows from it.

    Raises:
        SettingsError: something in it is wrong; the message has a line for each problem, with file and line.
    """
    from configs.contract import load_contract
    from configs.files import read_lined
    from models.contract.declared import TermsError
    from models.policy.core.sustained import checked_terms

    checked = load_contract(file.stem, file.parent)
    try:
        return checked, *checked_terms(checked)
    except TermsError as error:
        told = str(error).removeprefix("Terms: ")
        key = re.match(r"[\w.]*", told)
        at = read_lined(file.read_text()).line_of(["backpressure", *(key[0].split(".") if key else [])])
        raise SettingsError(f"{file.name}, line {at}: backpressure.{told}") from None


def list_unkept(file: Path, policy: str) -> list[str]:
    """List what a contract's file states of `planning` that a policy does not keep to, a line each."""
    from configs.files import read_lined
    from configs.policies import PLANNED_BY

    lines = read_lined(file.read_text()).lines
    stated = {str(place[1]): line for place, line in lines.items() if place[0] == "planning" and len(place) == 2}
    return [
        f"planning.{key} (line {stated[key]}): not kept by the policy {policy}, but by {', '.join(keepers)}"
        for key, keepers in PLANNED_BY.items()
        if key in stated and policy not in keepers
    ]


def list_problems(contracts: Sequence[str]) -> list[str]:
    """List what is wrong in contracts that are named by job or file, a line each; one that is wrong stops no other."""
    found: list[str] = []
    for one in contracts:
        try:
            check_file(contract_file(one))
        except SettingsError as error:
            found += str(error).splitlines()
    return found


def all_contracts(settings: Settings) -> list[str]:
    """List the files of all contracts, those that are called `.yml`, which nothing reads, among them.

    Raises:
        SettingsError: there are none.
    """
    folder = settings.contracts_dir
    found = sorted(str(path) for path in folder.glob("*.y*ml") if path.suffix in (".yaml", ".yml"))
    if not found:
        raise SettingsError(f"{folder}: no contract in it. Set TIDECAST_CONTRACTS to the folder of yours.")
    return found
