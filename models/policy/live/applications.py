"""What of a job goes by its Spark application: executors that it began with, their slots, and whether two report.

Of two a number is of one or the other, and both obey decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models.contract.service_rate import COLD_BATCHES
from models.policy.copies import copy_with
from models.policy.core.capacity import parallelism
from models.policy.live.memory import Memory

WITHIN_S = 60.0
"""Wall seconds in which turns count: a driver that is restarted takes one, and none that ended comes back."""
RETURNS = 3
"""Times that one comes back in them where there are two; fewer may be for records that came out of order."""


def with_turn(memory: Memory, application: str | None, now: float) -> Memory:
    """Return the memory after a record of an application (None: none is named); `now` is wall time, epoch seconds.

    Another one than before is of a driver that begins: what the one before it asked for nobody asks for, and its first
    batches load classes, as those after a raise do.
    """
    if application is None or (memory.turns and [*memory.turns][-1] == application):
        return memory
    if memory.turns:
        memory = copy_with(_asked_by_nobody(memory), pending=None, cold=COLD_BATCHES)
    turns = _recent(memory, now)
    turns[application] = [*turns.pop(application, []), now][-1 - RETURNS :]
    return copy_with(memory, turns=turns)


def _asked_by_nobody(memory: Memory) -> Memory:
    """The memory once nobody asks for what was decided: of that nothing is missing, or starts, or has no room."""
    return copy_with(memory, missing_at=None, changed_at=None, raised_at=None, asked_at=None, no_room=False)


def with_application(before: Memory, after: Memory, sample: dict[str, Any]) -> Memory:
    """Return the memory after an interval, with what it tells of the application and of who asks for its executors.

    An agent that asks for executors from now on asks for those that its driver was started with: of them no fewer count
    as the target, also where it observed before with the first of them. What was decided beyond these is asked for by
    nobody yet: of live records a raise as of now, unless it was missing when a driver ended. Where an executor has
    other slots than before, what was learned is converted: it does as many times more or less. The contract's `cores`
    say how slots are counted; if both change, in whichever order, a record takes a slot as long as before.

    Args:
        before: the interval.
        after: it, by `with_interval`.
        sample: fields of a `tidecast.messages.MetricSample` of kind "interval".
    """
    after = _with_agent(before, after)
    if before.pending is None and after.pending is not None and after.target is not None:
        asked = (after.executors or 0) + after.pending
        after = copy_with(after, target=max(after.target, asked - after.replay.executors_soon(asked)))
    return _with_slots(before, after, sample)


def _with_agent(before: Memory, after: Memory) -> Memory:
    """The memory with what an agent asks for that acts again, and without what was missing as a driver ended."""
    asked = (after.executors or 0) + (after.pending or 0)
    if after.standing is None or after.standing.executors <= asked:
        return after
    was_idle, idle = (one.mode not in (None, "act") for one in (before, after))
    begins = before.pending is None and after.pending is not None
    if idle and not was_idle:
        return _asked_by_nobody(after)  # what may come still is noted anew
    if idle or not (was_idle or begins):
        return after
    raised_at = after.raised_at if after.missing_at is None else after.metric_at  # of what was missing
    return copy_with(after, standing=replace(after.standing, executors=asked), raised_at=raised_at)


def _with_slots(before: Memory, after: Memory, sample: dict[str, Any]) -> Memory:
    """The memory with slots as the interval tells them, and what was learned converted to these."""
    if not sample["executors"] or not sample.get("cores"):
        return after
    slots, model = sample["cores"] / sample["executors"], after.model
    share = _counted_share(after, slots)
    # By the executors with which it was learned: a driver that begins again has none at first, and then one.
    if before.counted is not None and slots != before.slots:
        model = copy_with(model, per_record_s=model.per_record_s * share / before.counted)
    if (slots, share, model) == (after.slots, after.counted, after.model):
        return after  # as with nearly every interval
    return copy_with(after, slots=slots, counted=share, model=model)


def _counted_share(memory: Memory, slots: float) -> float:
    """How many times as much as they do executors of so many slots are taken to do; 1 before anything was learned."""
    if not (memory.cores and slots and memory.tasks):
        return 1.0
    counted, real = (parallelism(memory.executors or 1, each, memory.tasks) for each in (memory.cores, slots))
    return (counted / real) ** (memory.scaling or 1.0)


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
