"""A decision as the pages show it, taken with care from a message whose `inputs` may hold anything."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidecast.fields import MOST
from tidecast.messages import Decision, Outcome

STANDING = ("late_s", "seconds", "budget_left", "burn_long", "burn_short")
"""Keys of how a promise stands."""


class Decided(NamedTuple):
    """One decision of a job.

    Attributes:
        id: of the message.
        at: wall time, epoch seconds.
        mode: "act", or "observe" for a recommendation.
        policy: that decided.
        executors: that it asks for.
        before: executors that were there; None where it is not said.
        capacity_rps: records/s that these sustained; None where it is not said.
        reason: for a person.
        codes: the same as fixed words.
    """

    id: str
    at: float
    mode: str
    policy: str
    executors: int
    before: float | None
    capacity_rps: float | None
    reason: str
    codes: tuple[str, ...]

    @classmethod
    def of(cls, decision: Decision) -> Decided:
        """Return what is shown of a message."""
        before, capacity_rps = (quantity(decision.inputs.get(name)) for name in ("executors", "capacity_rps"))
        return cls(
            decision.id, decision.wall_time, decision.mode, decision.policy, decision.executors, before, capacity_rps,
            decision.reason, tuple(decision.codes),
        )  # fmt: skip


class Became(NamedTuple):
    """What became of a decision: `status` as in `tidecast.messages.Outcome`, and why."""

    id: str
    status: str
    reason: str

    @classmethod
    def of(cls, outcome: Outcome) -> Became:
        """Return what is shown of a message."""
        return cls(outcome.decision_id, outcome.status, outcome.reason)


def quantity(value: Any) -> float | None:
    """Return a JSON value as a number of at most MOST (1e15) in size; None if it is none."""
    if type(value) not in (int, float) or not abs(value) <= MOST:
        return None
    return float(value)


class Stood(NamedTuple):
    """How a job's promise stood at a decision.

    Attributes:
        at: wall time of the newest batch that is counted, epoch seconds; of older logs, of the newest interval read.
        standing: as `models.policy.core.budget.Account.standing` returns it.
        scale: job seconds per wall second.
    """

    at: float
    standing: dict[str, float | None]
    scale: float


def standing_of(decision: Decision) -> Stood | None:
    """Return how the promise stood at a decision; None where that does not say it, or not in numbers that could be."""
    said = decision.inputs.get("promise")
    if not isinstance(said, dict):
        return None
    found = {name: quantity(said.get(name)) for name in STANDING}
    if any((found[name] or 0.0) < 0 for name in STANDING if name != "budget_left") or found["seconds"] is None:
        return None
    known = (quantity(decision.inputs.get(name)) for name in ("batch_wall_time", "metric_wall_time"))
    at = next((one for one in known if one is not None), None)
    return Stood(decision.wall_time if at is None else min(at, decision.wall_time), found, decision.time_scale)
