"""Several policies in one simulation, each over runs of its own: what every look costs is paid once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from models.policy.core.choice import Choice, make_choice
from models.policy.core.policy import Policy
from models.policy.core.view import View
from models.twin.sim.given import Foresight


class Lane(NamedTuple):
    """The runs of one policy.

    Attributes:
        policy: with parameters that are numbers, or arrays with one entry per run of the lane.
        runs: how many.
        foresight: forecasts for every look of its longest run, `row` (runs of the lane,); None where the policy
            receives none.
    """

    policy: Policy
    runs: int
    foresight: Foresight | None = None


@dataclass(frozen=True, eq=False)
class SideBySide:
    """A policy for `simulate` that asks each of several policies for the runs of its lane, which follow one another.

    Attributes:
        lanes: at least one; together they have all runs.
        every_s: seconds between two looks.
    """

    lanes: tuple[Lane, ...]
    every_s: int
    name: str = "side_by_side"

    def fresh(self, runs: int) -> Any:
        """Return the memories of the lanes' policies, by lane; `runs` is the sum over the lanes."""
        return {at: lane.policy.fresh(lane.runs) for at, lane in enumerate(self.lanes)}

    def decide(self, memory: Any, view: View) -> tuple[Any, Choice]:
        """Return the lanes' memories and choices, one behind the other; the needs behind a choice are left out."""
        number, begin = round(view.now_s / self.every_s), 0
        after, choices = {}, []
        for at, lane in enumerate(self.lanes):
            # A lane whose runs have all ended stands still beside longer ones: what it receives then changes nothing.
            ahead = lane.foresight.at(min(number, lane.foresight.decisions - 1)) if lane.foresight else None
            seen = view.select(slice(begin, begin + lane.runs), ahead)
            after[at], choice = lane.policy.decide(memory[at], seen)
            choices.append(choice)
            begin += lane.runs
        target, why = (np.concatenate(part) for part in zip(*((c.target, c.why) for c in choices), strict=True))
        return after, make_choice(target, why)
