"""What helps where the autoscaler's query does not start."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pipelines.kafka.connection import RIGHTS
from pipelines.spark.checkpoint import repair

SLOW_WORKER = "connect back"  # how Spark says that a worker of Python was not there in time
BUSY = (
    "\nThis computer was too busy to start Spark's Python worker in time. Nothing is wrong with what has been learned: "
    "give it room, and start the autoscaler again."
)


def remedy_of(checkpoint: Path) -> str:
    """Say what helps where a query that is to go on from a checkpoint does not start."""
    # What is decided again is a decision of its own: agents follow the newest.
    found = repair.remedy_of(checkpoint, keyed=True) or f"That may be about files of {checkpoint}."
    aside = shlex.join(["mv", f"{checkpoint}", f"{repair.free_name(checkpoint)}"])
    return (
        f"\n{found}\nWithout what it had learned it starts after: {aside}\n"
        "Each job is learned again within minutes. Until then the guesses of its contract count, by which it may get "
        "fewer executors than it needs: `tidecast job mode JOB freeze` keeps those that it has."
    )


def advice_on(failure: object, remedy: Callable[[], str]) -> str:
    """Return what helps: where a topic is forbidden or the computer too busy, what has been learned is not at fault.

    Args:
        failure: of the query.
        remedy: says what helps against any other.
    """
    if "AuthorizationException" in str(failure):
        return f"\n{RIGHTS}"
    return BUSY if SLOW_WORKER in str(failure) else remedy()
