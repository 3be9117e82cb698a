"""`tidecast contract init`: a contract from what was observed of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from configs.contract import LEAST_BUDGET
from configs.errors import SettingsError
from pipelines.cli.options import Job, print_progress, settings_from_options


def propose_from_lake(
    job: Job,
    error_budget: Annotated[
        float, typer.Option(min=LEAST_BUDGET, max=0.5, help="Share of seconds that may be late; the target follows.")
    ] = 0.01,
    price: Annotated[
        float | None, typer.Option(min=0.0001, help="Price of an executor-hour, in any currency; else none is stated.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write it among the contracts, where there is none.")] = False,
) -> None:
    """Propose a contract for an attached job from what the lake holds of it: the promise that it keeps as it is.

    Its newest week is read. The latency target is the shortest that was kept with the executors that were there; where
    that does not hold in the job's twin, over that load under the shipped policy, which also gives executors up, the
    nearest target or ceiling is taken that does. Every number says what it was observed from. Takes seconds for an
    hour of load, some minutes for a week; what is tried goes to stderr.

    Raises:
        SettingsError: no job can have the name, or with `--write` it has a contract already (status 2).
        LakeError: nothing was ever ingested (status 2).
        TwinError: too little was observed, or nothing near what was observed holds in the twin (status 2).
        JavaError, JarsError: Spark cannot start, which reads the lake (status 2).
        OSError: the file cannot be written (status 2).
    """
    from models.twin.contract.proposed import propose_contract
    from pipelines.advise.observed import observe_job
    from pipelines.advise.proposal_text import format_outcome, format_proposal
    from pipelines.advise.read import read_messages

    settings = settings_from_options()
    path = settings.contracts_dir / f"{job}.yaml"
    if write and path.exists():
        raise SettingsError(f"{path}: {job} has a contract already. Leave --write out, and `contract diff` the two.")
    observed = observe_job(job, *read_messages(settings, job), error_budget, price)
    proposal = propose_contract(
        observed.draft, observed.seen.twin, observed.seen.arrived, lambda one: print_progress(format_outcome(one))
    )
    text = format_proposal(observed, proposal)
    if not write:
        print(text, end="")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"written: {path}")
