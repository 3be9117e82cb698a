"""What helps where the autoscaler's query does not start."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pipelines.kafka.connection import RIGHTS
from pipelines.spark.checkpoint import repair

SLOW_WORKER = "connect back"  # how Spark says that a worker of Python was not there in time
SOUND = "Nothing is wrong with what has been learned: mend that, and start the autoscaler again."
BUSY = (
    "\nThis computer was too busy to start Spark's Python worker in time. Nothing is wrong with what has been learned: "
    "give it room, and start the autoscaler again."
)
FAULTS_OF_NODES = {
    ("Cannot run program",): (
        "A node cannot run that. Of Python it has to have the one that PYSPARK_PYTHON names, or else the one of this "
        "command, for the user as whom executors run; or ship it (docs/deploy.md)."
    ),
    ("Permission denied", "AccessDeniedException", "Mkdirs failed"): (
        "A process of Spark may not read or write that. The folder has to be on every node, with room, and the user as "
        "whom executors run has to have the right; on YARN that is seldom yours (docs/deploy.md)."
    ),
}
"""What helps, by the words of Java and Hadoop for what is wrong; the first that are said count."""


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
    """Return what helps: where a node, a topic or the computer is at fault, what has been learned is not.

    Args:
        failure: of the query.
        remedy: says what helps against any other.
    """
    told = _told(failure)
    if "AuthorizationException" in told:
        return f"\n{RIGHTS}"
    if SLOW_WORKER in told:
        return BUSY
    for words, helps in FAULTS_OF_NODES.items():
        if said := [line.strip() for line in told.splitlines() if any(word in line for word in words)]:
            return f"\n{said[-1]}\n{helps} {SOUND}"
    return remedy()


def _told(failure: object) -> str:
    """What an error of Spark says, and what its causes do: the first may say only that a state cannot be loaded."""
    told = []
    while failure is not None:
        told.append(f"{failure}")
        failure = getattr(failure, "_cause", None)
    return "\n".join(told)
