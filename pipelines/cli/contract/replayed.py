"""`tidecast contract replay`: what was decided, computed again of what it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import CorrectableError
from pipelines.cli.options import settings_from_options, settings_of_stack

if TYPE_CHECKING:
    from configs.contract import Contract
    from models.contract.trace import TraceDifference
    from models.dqn.agent.model import DqnModel
    from models.policy.core.policy import Policy
    from models.policy.live.recomputed import Agents, Contracts

CONTRACTS = "contracts.jsonl"
"""File beside a dump of decisions that holds the dump of the topic `contracts`."""


class TraceFileError(CorrectableError):
    """A file that is no control trace and no dump of decisions; the message names file, line and remedy."""


def replay_recorded(
    trace: Annotated[
        Path,
        typer.Argument(help="JSON lines: the topic decisions, one a line, or a control trace, header first."),
    ],
    tolerance: Annotated[
        float,
        typer.Option(min=0.0, max=0.1, help="Difference allowed, relative or absolute; give 1e-9 on another platform."),
    ] = 0.0,
) -> None:
    """Make recorded decisions again of what they name, or every control of a trace; all must agree, to the last bit.

    Of a job's decisions: executors, reason and codes, and of those beside a replay its rate, what each executor would
    bring, and the relief. Their contracts are taken from `contracts.jsonl` beside the file, the topic `contracts`, and
    from the folder of contracts; agents from MLflow. Prints how many agree, and what could not be made again and why,
    status 0; or the first value that differs with its line, status 1.

    Raises:
        TraceFileError: the file cannot be read, or a line of it is no such line (status 2).
    """
    from models.contract.trace import ControlTraceError, replay
    from models.policy.live.audit import DecisionLineError, audit_decisions, is_decision

    seen = 0

    def lines() -> Iterator[str]:
        nonlocal seen
        with trace.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                seen += 1
                yield line.rstrip("\n")

    try:
        if is_decision(next(lines(), "")):
            seen = 0
            found = audit_decisions(lines(), _contracts(trace.parent / CONTRACTS), tolerance, _agents())
            _end_at(trace, found.difference)
            print(f"{trace}: {found.decisions} decisions and {found.rates} rates of replays, each as logged")
            for why, number in found.left.items():
                print(f"  {number} not made again: {why}")
            return
        seen = 0
        _end_at(trace, replay(lines(), tolerance))
    except (ControlTraceError, DecisionLineError) as error:
        raise TraceFileError(f"{trace}, {error}.") from None
    except UnicodeDecodeError as error:
        raise TraceFileError(
            f"{trace}, after line {seen}: no text: {error}. Name a control trace, or decisions."
        ) from None
    except OSError as error:
        raise TraceFileError(f"{trace}: cannot be read: {error}. Name a control trace, or decisions.") from None
    print(f"{trace}: {seen - 1} intervals, each control as logged")


def _end_at(trace: Path, found: TraceDifference | None) -> None:
    if found is not None:
        said = f"{found.field} is logged as {found.logged!r}, computed as {found.recomputed!r}"
        print(f"{trace}, line {found.line}: {said}")
        raise SystemExit(1)


def _agents() -> Agents:
    """The agents that decided, of the registry; it is asked once for each, and not where no learned policy decided."""
    from models.dqn.agent.policy import maker
    from pipelines.registry import AgentRegistry

    known: dict[tuple[str, str], DqnModel | str] = {}

    def load(job: str, version: str) -> DqnModel | str:
        try:
            return AgentRegistry(settings_of_stack()).load(job, version)
        except (CorrectableError, ValueError, OSError) as error:
            return f"the agent of {job}, version {version}, is not to be had: {error}"

    def agents(job: str, version: str) -> Callable[[str, Contract], Policy]:
        found = known[job, version] = known.get((job, version)) or load(job, version)
        if isinstance(found, str):
            raise LookupError(found)
        return maker(found)

    return agents


def _contracts(dumped: Path) -> Contracts:
    """The contracts of the folder of contracts, and those that a dump of their topic holds, by their hash."""
    from configs.contract import read_contracts
    from models.policy.live.recomputed import parse_contracts

    read, _ = read_contracts(settings_from_options().contracts_dir)
    found = {one.hash: one for one in read.values()}
    if not dumped.is_file():
        return found
    try:
        rows = [json.loads(line) for line in dumped.read_text(encoding="utf-8").split("\n") if line]
        return found | parse_contracts(rows)
    except (KeyError, TypeError, ValueError) as error:
        what = "the topic `contracts`, a record a line, is expected"
        raise TraceFileError(f"{dumped}: {type(error).__name__}: {error}; {what}. Dump it anew.") from None
