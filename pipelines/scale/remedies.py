"""What helps where the autoscaler's query does not start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipelines.kafka.broker import RIGHTS
from pipelines.spark.checkpoint import repair


def remedy_of(checkpoint: Path) -> str:
    """Say what helps where a query that is to go on from a checkpoint does not start."""
    # What is decided again is a decision of its own: agents follow the newest.
    found = repair.remedy_of(checkpoint, keyed=True) or f"That may be about files of {checkpoint}."
    return (
        f"\n{found}\nWithout what it had learned it starts after: mv {checkpoint} {repair.free_name(checkpoint)}\n"
        "Each job is learned again within minutes; executors stay as they are meanwhile."
    )


def advice_on(failure: object, remedy: Callable[[], str]) -> str:
    """Return what helps: where a topic is forbidden, nothing is wrong with what has been learned.

    Args:
        failure: of the query.
        remedy: says what helps against any other.
    """
    return f"\n{RIGHTS}" if "AuthorizationException" in str(failure) else remedy()
