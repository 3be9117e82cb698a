"""`tidecast up`, `down` and `doctor`: the stack that stays, and what this computer lacks for it."""

from __future__ import annotations

import typer

from configs.settings import load


def up() -> None:
    """Start the stack, leave it running, and print its addresses."""
    from pipelines.kafka.topics import create_topics
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
    print("`make down` (or `tidecast down`) ends it.")


def down() -> None:
    """Stop the stack that runs on this `var` folder."""
    from pipelines.stack.stack import down as stack_down

    ended = stack_down(load().var_dir)
    print(f"ended: {', '.join(ended)}" if ended else "nothing was running")


def doctor() -> None:
    """Check what this computer needs and say how to get what is missing; status 1 where something is."""
    from pipelines.stack.doctor import checks

    found = checks(load())
    for check in found:
        print(check)
    if not all(check.ok for check in found):
        raise typer.Exit(1)
