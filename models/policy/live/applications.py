"""Whether two Spark applications report as one job: a number is then of one or the other, and both obey decisions."""

from __future__ import annotations

from dataclasses import replace

from models.policy.live.memory import Memory

WITHIN_S = 60.0
"""Wall seconds in which turns count: a driver that is restarted takes one, and none that ended comes back."""
RETURNS = 3
"""Times that one comes back in them where there are two; fewer may be for records that came out of order."""


def with_turn(memory: Memory, application: str | None, now: float) -> Memory:
    """Return the memory after a record of an application (None: none is named); `now` is wall time, epoch seconds."""
    if application is None or (memory.turns and [*memory.turns][-1] == application):
        return memory
    turns = _recent(memory, now)
    turns[application] = [*turns.pop(application, []), now][-1 - RETURNS :]
    return replace(memory, turns=turns)


def two_report(job: str, memory: Memory, now: float) -> str:
    """Say which applications report as a job in turn, and what helps; "" where one does.

    Args:
        job: its name.
        memory: of the job.
        now: wall time, epoch seconds.
    """
    turns = _recent(memory, now)
    if sum(map(len, turns.values())) - len(turns) < RETURNS:
        return ""
    return (
        f"applications {' and '.join(sorted(turns))} report as {job!r}, and nothing is decided for it until one does: "
        "end one, or give it a job name or a prefix of its own"
    )


def _recent(memory: Memory, now: float) -> dict[str, list[float]]:
    recent = {one: [at for at in times if 0 <= now - at < WITHIN_S] for one, times in memory.turns.items()}
    return {one: times for one, times in recent.items() if times}
