"""Decides whether an agent applies a decision, without side effects, and says why in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from tidecast.messages import Decision

REMEMBERED = 500  # decision ids kept to recognise duplicates: many times what can be made while a decision stays fresh


@dataclass(frozen=True)
class Limits:
    """What is accepted: `least` to `most` executors of `slots_per_executor` (from 1) slots, up to `fresh_s` s old."""

    least: int
    most: int
    slots_per_executor: int = 1
    fresh_s: float = 10.0


@dataclass(frozen=True)
class SeenDecisions:
    """Earlier decisions: ids of the last REMEMBERED, id and wall time of the last accepted one (-inf before any).

    And the wall time at which the agent took the executors over: what was measured before knew nothing of its number.
    """

    ids: tuple[str, ...] = ()
    accepted_at: float = -math.inf
    accepted_id: str = ""
    taken_over_at: float = -math.inf

    def after(self, decision: Decision, accepted: bool) -> SeenDecisions:
        """Return a copy that has seen `decision` too; `accepted` also makes it the last accepted one."""
        seen = self if decision.id in self.ids else replace(self, ids=(*self.ids, decision.id)[-REMEMBERED:])
        return replace(seen, accepted_at=decision.wall_time, accepted_id=decision.id) if accepted else seen


@dataclass(frozen=True)
class GuardVerdict:
    """What to do with a decision.

    apply: change the executors. hold: they are as decided, nothing to do. ignore: this agent does not act on it now.
    refuse: it must not be applied, and its sender should know. reject: it should not be on the topic at all. Where the
    objection is to the `number_alone`, the decision is fresh and in its turn: what else it says was decided just now.
    """

    action: Literal["apply", "hold", "ignore", "refuse", "reject"]
    reason: str
    number_alone: bool = False


def check_decision(
    decision: Decision, job: str, mode: str, current_executors: int, limits: Limits, ceiling_tasks: int | None,
    seen: SeenDecisions, now: float,
) -> GuardVerdict:  # fmt: skip
    """Return whether an agent applies a decision from the topic, and why (not). Changes nothing.

    Checked in this order: job, whether decision and agent act at all, duplicate id, age (at most `limits.fresh_s` s
    before or after `now`), order, bounds, useful ceiling, whether it goes by metrics from before the agent took over.
    The verdict's reason names the first objection.

    Args:
        decision: how many executors the autoscaler wants.
        job: name of the agent's job.
        mode: the agent's mode; decisions are applied in `act` alone.
        current_executors: number last asked for, or running before the first decision.
        limits: bounds of executors, slots of each, and seconds that a decision stays fresh.
        ceiling_tasks: parallel tasks of the stage that limits the rate (more cores are of no use); None: unknown.
        seen: earlier decisions.
        now: the agent's wall time, epoch seconds.

    Returns:
        Its action is `reject` for another job's decision; `ignore` if decision or agent does not act; `hold` if
        `current_executors` is as decided, within bounds or not; on an objection `refuse`, or `ignore` if nothing would
        change or the metrics are too old; else `apply`.
    """
    if decision.job != job:
        return GuardVerdict("reject", f"job={decision.job!r} under the key {job!r}; key a record by its job")
    if decision.mode != "act":
        return GuardVerdict("ignore", f"{decision.id} is a recommendation (mode={decision.mode})")
    if mode != "act":
        return GuardVerdict("ignore", f"the agent's mode is {mode}")
    hold = decision.executors == current_executors
    if objection := _untimely(decision, limits, seen, now):
        return GuardVerdict("ignore" if hold else "refuse", objection)
    if hold:  # were it out of reach, too: what else it says is reckoned from those that run
        return GuardVerdict("hold", f"{current_executors} executors are as decided")
    if objection := _out_of_reach(decision.executors, limits, ceiling_tasks):
        return GuardVerdict("refuse", objection, number_alone=True)
    measured = decision.inputs.get("metric_wall_time")  # by the agent's own clock, which may have been set back since
    if isinstance(measured, float | int) and measured < seen.taken_over_at <= now:
        words = f"{decision.id} goes by metrics from before this agent asked for {current_executors}"
        return GuardVerdict("ignore", words, number_alone=True)
    return GuardVerdict("apply", decision.reason)


def _untimely(decision: Decision, limits: Limits, seen: SeenDecisions, now: float) -> str | None:
    age = now - decision.wall_time
    if decision.id in seen.ids:
        return f"duplicate: {decision.id} was seen before"
    if age > limits.fresh_s:
        return f"stale: decided {age:.1f} s ago; at most {limits.fresh_s:g} s are allowed"
    if age < -limits.fresh_s:
        return f"from the future: decided {-age:.1f} s ahead of the agent's clock; set the sender's clock"
    if decision.wall_time < seen.accepted_at <= now + limits.fresh_s:  # later than that: clocks were set back since
        return f"out of order: made before {seen.accepted_id}, which was accepted already"
    return None


def _out_of_reach(wanted: int, limits: Limits, ceiling_tasks: int | None) -> str | None:
    if not limits.least <= wanted <= limits.most:
        return f"out of bounds: executors={wanted}; {limits.least} to {limits.most} are allowed"
    if ceiling_tasks is not None and wanted > max(
        useful := math.ceil(ceiling_tasks / limits.slots_per_executor), limits.least
    ):
        tasks = f"{ceiling_tasks} tasks of the stage that takes the time, {limits.slots_per_executor} at once on each"
        return f"beyond the useful ceiling: executors={wanted}; {useful} at most ({tasks})"
    return None
