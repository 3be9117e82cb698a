"""`tidecast contract diff`: in which terms two contracts of a job differ, and what the change would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.contract.checked import check_file, contract_file
from pipelines.cli.options import print_progress, settings_from_options


def compare_contracts(
    contract: Annotated[str, typer.Argument(help="A job, or a contract's file: the contract as it would be.")],
    against: Annotated[Path, typer.Option(help="A file with the job's contract as it was, of any name.")],
    terms_only: Annotated[
        bool, typer.Option("--terms-only", help="Say which terms differ, not what they cost: needs no lake.")
    ] = False,
) -> None:
    """Say in which terms a job's contract differs from an earlier one, and what the change would cost by its twin.

    Status 0 if no term differs, 1 if one does, 2 for trouble. Both contracts are served in the job's twin, over the
    newest week of its load in the lake and in the same futures: late seconds, executor-hours, and money where a price
    is stated. `git show main:configs/contracts/orders.yaml` into a file gives what is on another branch.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: there is no such contract, or something in one of them is wrong (status 2).
        LakeError: nothing was ever ingested (status 2).
        TwinError: too little was observed of the job (status 2).
        JavaError, JarsError: Spark cannot start, which reads the lake (status 2).
    """
    from configs.contract import read_contract
    from models.twin.contract.changed import changed_terms

    file = contract_file(contract)
    after, *_ = check_file(file)
    before = read_contract(against, after.job, f"a contract of {after.job!r} is compared. Name one of its own.")
    changes = changed_terms(before, after)
    if not changes:
        print(f"{after.job}: no term differs from {against}")
        return

    from pipelines.advise.change_text import format_change, format_terms

    print(format_terms(after.job, str(against), changes))
    if not terms_only:
        from models.twin.contract.tried import try_contract
        from pipelines.advise.measured import measure_job
        from pipelines.advise.read import read_messages

        seen = measure_job(*read_messages(settings_from_options(), after.job), before)
        print_progress(f"simulating {len(seen.executors) / 3600:.1f} hours of load under each")
        was, now = (try_contract(one, seen.twin, seen.arrived) for one in (before, after))
        print(format_change(was, now))
    raise typer.Exit(1)
