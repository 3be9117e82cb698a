"""The decision that stands: what comes to the same is counted and not written again."""

from __future__ import annotations

from dataclasses import dataclass, replace

REMIND_S = 5.0
"""An agent that acts and whose executors are not as decided is sent it again after this long: it may have been away."""
MOMENTARY = {"backlog", "cooldown", "catch_up", "delayed_down"}
"""Codes that come and go from one second to the next; a hold for another one of them is no other decision."""


@dataclass(frozen=True)
class Standing:
    """The decision that was written last.

    Attributes:
        id: of its record.
        since: wall time at which it was made.
        executors: that it asks for.
        alike: what another evaluation must have in common with it to come to the same.
        repeats: evaluations since that did.
        vouched: how many of these a heartbeat has reported.
    """

    id: str
    since: float
    executors: int
    alike: str
    repeats: int = 0
    vouched: int = 0


def repeated(standing: Standing | None, now: float, codes: list[str], same: str, reached: bool) -> Standing | None:
    """The standing decision with one repeat more; None where an evaluation is to be written.

    Args:
        standing: None before the first decision.
        now: wall time of the evaluation.
        codes: its codes; what moves the target is always written.
        same: its `alike`.
        reached: whether the executors are as decided, or nobody acts on decisions.
    """
    if standing is None or codes[0] != "hold" or standing.alike != same:
        return None
    if not reached and now - standing.since >= REMIND_S:
        return None
    return replace(standing, repeats=standing.repeats + 1)
