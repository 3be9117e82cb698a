"""`tidecast up`, `down`, `doctor`, `backup`, `restore`: the stack that stays, what it lacks, and what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.settings import load


def up() -> None:
    """Start the stack, leave it running, print its addresses and plans' pages; after a failure all is stopped again.

    Broker, Spark, Airflow and MLflow listen on the loopback, at the ports of the settings (0: any free one). Their
    state is in `var`, their logs in `var/log`. Blocks until every part is healthy: one or two minutes, on a slow
    computer more.

    Raises:
        StackError, PortError, JavaError, JarsError, ProcessError: a part does not start, or a stack runs on this folder
            already (status 2).
        BrokerError: the topics cannot be created (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: a file under `var` cannot be written.
    """
    from pipelines.kafka.topics import create_topics
    from pipelines.placement.page.plan_page import plan_pages
    from pipelines.stack.stack import Stack

    stack = Stack(load(), {"broker", "spark", "airflow", "mlflow_ui"}, fresh=())
    try:
        stack.start(lambda part, seconds: print(f"{part} is up after {seconds:.0f} s", flush=True))
        create_topics(stack.settings.kafka)
    except BaseException:
        stack.stop()
        raise
    stack.detach()
    for name, address in stack.addresses.items():
        print(f"{name:10} {address}")
    print(f"{'master':10} {stack.settings.spark.master}")
    for page in plan_pages(stack.settings):
        print(f"{'plan':10} {page.as_uri()}")
    print("`make down` (or `tidecast down`) ends it.")


def down() -> None:
    """Stop the stack that runs on this `var` folder, within 13 s, and print what was ended.

    Raises:
        StackError: something survived SIGKILL; or a process has the folder that is not a stack left running, as one
            that starts one (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: `var/stack.json` cannot be read, or the stack is another user's.
    """
    from pipelines.stack import state
    from pipelines.stack.context import StackRunsError

    var = load().var_dir
    ended = state.end_recorded_stack(var)
    if not ended and state.is_reserved(var):
        raise StackRunsError(var, state.holder(var))
    print(f"ended: {', '.join(ended)}" if ended else "nothing was running")


def doctor() -> None:
    """Check what this computer needs and say how to get what is missing; status 1 where something is.

    A line per check: the clone's folder, Python, packages, Java, jars, memory, disk, `var`, cores, ports, services.
    Takes a second, and up to 5 s for each host of the settings that does not answer.

    Raises:
        typer.Exit: 1: something is missing.
        SettingsError: a setting is wrong (status 2).
        FileNotFoundError: there is no requirements.lock.
    """
    from pipelines.stack.doctor import run_checks

    checks = run_checks(load())
    for check in checks:
        print(check)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def backup(file: Annotated[Path, typer.Argument(help="The archive to write; must not be there yet.")]) -> None:
    """Write what the folder `var` holds and nothing makes again to one archive: models, lake, broker, Airflow, runs.

    The stack must not run on it (`make down`), nor anything else write to it. Prints what belongs to the deployment and
    is not in the archive.

    Raises:
        BackupError: the archive is there already, something writes to the folder, or it is empty (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: a file cannot be read or written.
    """
    from pipelines.stack.backup.write import write_backup

    made = write_backup(load(), file)
    print(f"{file}: {made.files:,} files of {made.var}, {made.size / 1e6:,.1f} MB before compression")
    for other in made.elsewhere:
        print(f"not in the backup: {other}")


def restore(
    file: Annotated[Path, typer.Argument(help="The archive to read, of `tidecast backup`.")],
    only: Annotated[str, typer.Option(help="Restore this folder or file of `var` alone: mlflow, jobs/NAME.")] = "",
) -> None:
    """Restore an archive of `tidecast backup` to a folder `var` that holds nothing yet; `make up` starts it then.

    Each file is compared with its SHA-256 before the first one is put where it belongs. With `--only` one part, as
    `mlflow`, `lake/metrics` or `jobs/NAME`, is put beside what `var` holds; move what is left of it away before. The
    stack must not run (`make down`).

    Raises:
        BackupError: no such archive, a damaged one, or one without the part; the folder holds something, or a stack
            runs on it (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.stack.backup.restore import restore_backup

    settings = load()
    made = restore_backup(settings, file, only)
    print(
        f"{settings.var_dir / only}: {made.files:,} files restored, as {Path(made.var) / only} was on {made.written} "
        f"(release {made.release})"
    )
    for other in () if only else made.elsewhere:
        print(f"not in the backup: {other}")
    print("`make up` starts it.")
    if Path(only).parts[:1] in ((), ("kafka",)) and (settings.var_dir / "kafka").is_dir():  # records of its topics
        print(
            f"modes and orders are those of {made.written}: say a freeze or a cancellation since then again, before "
            "jobs start."
        )
