"""The decision that stands: what comes to the same is counted and not written again."""

from __future__ import annotations

from dataclasses import dataclass, replace

REMIND_S = 5.0
"""Seconds after which a decision that the agent has not carried out is sent to it again."""
MOMENTARY = {"backlog", "cooldown", "catch_up", "delayed_down", "turn"}
"""Codes that change from second to second; holds that differ in them alone count as the same decision."""


@dataclass(frozen=True)
class Standing:
    """The decision written last; evaluations that come to the same are counted here, not written.

    Attributes:
        id: of its record.
        since: epoch seconds at which it was made.
        executors: that it asks for; fewer, while an agent that acts again was not told it, where that asks for fewer.
        alike: text that is equal for evaluations that come to the same.
        repeats: evaluations since that did.
        vouched: how many of these a heartbeat has reported.
    """

    id: str
    since: float
    executors: int
    alike: str
    repeats: int = 0
    vouched: int = 0

    def __post_init__(self) -> None:
        if not all(type(count) is int and count >= 0 for count in (self.executors, self.repeats, self.vouched)):
            counts = f"executors={self.executors}, repeats={self.repeats}, vouched={self.vouched}"
            raise TypeError(f"{counts}: whole numbers from 0 on are expected")


def count_repeat(standing: Standing | None, now: float, codes: list[str], same: str, reached: bool) -> Standing | None:
    """Count an evaluation as a repeat of the standing decision (the one written last), if it is one.

    Args:
        standing: None before the first decision.
        now: epoch seconds of the evaluation.
        codes: its codes, at least one; only one that begins with "hold" can be a repeat.
        same: its text, to be equal to `standing.alike`.
        reached: whether the agent asks for as many executors as decided, or nobody acts on decisions.

    Returns:
        A copy of the standing decision with one repeat more. None where the evaluation is to be written as a decision:
        it is another one, or the target has not been reached for 5 s (`REMIND_S`) and the agent is to be reminded.

    Raises:
        IndexError: no codes (and a standing decision).
    """
    if standing is None or codes[0] != "hold" or standing.alike != same:
        return None
    if not reached and now - standing.since >= REMIND_S:
        return None
    return replace(standing, repeats=standing.repeats + 1)
