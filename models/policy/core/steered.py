"""A wrapper that moves a policy's knob so that late seconds come as often as the promise allows, and not less often.

Dual ascent, as in online conformal prediction (Gibbs and Candès 2021, Angelopoulos et al. 2023): the strictness of a
policy rises with every late second and falls with every second of production by the budget's share of that. What it has
risen is therefore the late seconds beyond the budget, whatever the load does: as long as the strictest end is not late,
the share of late seconds comes to the budget in the long run, and it cannot stay below it while something is saved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, Why
from models.policy.core.policy import Policy
from models.policy.core.view import Memory, View

RUNGS_PER_LEAD = 0.35
"""Rungs that as many late seconds as one lead time move the strictness."""
FASTEST = 1.0
"""Most rungs at one look (evaluation), however many late seconds a batch tells of."""
FLOOR_RUNGS = 3.0
"""Rungs above a policy's strictest knob, over which the fewest executors rise to the most."""


@dataclass(frozen=True, eq=False)
class Steered:
    """A policy whose knob follows the account of the promise.

    Attributes:
        policy: that decides; has one knob.
        ladder: (N,) values of its knob, the most lenient first, at least two.
        start: place on the ladder at first, 0 to N - 1; it, `first` and `budget` may be one per run.
        first: value of the knob at that place.
        budget: share of the seconds that may be late.
        lead_s: seconds from now until what is asked for now works; a number or one per run.
    """

    policy: Policy
    ladder: Floats
    start: Floats | float
    first: Floats | float
    budget: Floats | float
    lead_s: Floats | float

    @classmethod
    def of(cls, policy: Policy, ladder: Floats, budget: Floats | float, lead_s: Floats | float) -> Steered:
        """Wrap a policy; it begins with the knob that it has, or with the nearest end of the ladder.

        Raises:
            ValueError: the ladder neither rises nor falls all the way.
        """
        steps = np.diff(ladder)
        if not ((steps > 0).all() or (steps < 0).all()):
            raise ValueError(f"ladder={ladder}: it must rise, or fall, from the most lenient value to the strictest")
        knob: Floats = np.asarray(getattr(policy, policy.knob), np.float64)  # type: ignore[attr-defined]
        made = cls(policy, ladder, 0.0, np.clip(knob, ladder.min(), ladder.max()), budget, lead_s)
        return replace(made, start=made._place(knob))

    def begun_at(self, knob: float) -> Steered:
        """Return the same with another start: the place on the ladder of a value of the knob, or its nearer end."""
        place = self._place(knob)
        return replace(self, start=place, first=np.interp(place, np.arange(len(self.ladder)), self.ladder))

    @property
    def name(self) -> str:
        """Name of the policy that decides."""
        return self.policy.name

    def fresh(self, runs: int) -> Memory:
        """Return the policy's own initial memory, and the place on the ladder."""
        return {**self.policy.fresh(runs), "rung": np.full(runs, self.start)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Move the knob by what was late since the last look, and return the policy's choice with it.

        Above the strictest value of the knob the choice is at least a number of executors that rises to the most; these
        begin as the policy begins others (`Rule.raise_towards`): those that slow each other down not all at once.
        Where nothing arrives and nothing waits it is not raised, because no second can be late then; what there is of
        it stays, so that a load that comes back finds it.

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        place = self.moved(memory["rung"], view.late_s, view.counted_s)
        inner: Any = replace(self.policy, **{self.policy.knob: self.knob_at(place)})  # type: ignore[type-var,attr-defined]
        after, choice = inner.decide({name: value for name, value in memory.items() if name != "rung"}, view)
        top = len(self.ladder) - 1.0
        above = np.minimum(np.maximum((place - top) / FLOOR_RUNGS, 0.0), 1.0)  # `np.clip` takes longer
        kept = np.ceil(view.least + (view.most - view.least) * above - 1e-9)
        kept = np.where(view.resting, np.minimum(kept, view.target), kept)
        lifted = kept > choice.target
        if lifted.any():
            raised = inner.raise_towards(view, np.maximum(kept, view.target))
            raised = np.minimum(np.maximum(raised, choice.target), kept)
            target, why = np.where(lifted, raised, choice.target), choice.why | lifted * int(Why.PROMISE)
            choice = replace(choice, target=target, why=why)
        return {**after, "rung": place}, choice

    def moved(self, place: Floats, late_s: Floats, counted_s: Floats) -> Floats:
        """Return (runs,) places on the ladder after late seconds among seconds of production, NaN or below 0 for none.

        At most `FASTEST` rungs at once, never below 0, nor further than that above where all executors are kept: a step
        that the end cut short would be late seconds that nothing pays back.
        """
        late, counted = (np.where(np.isfinite(value) & (value > 0), value, 0.0) for value in (late_s, counted_s))
        step = RUNGS_PER_LEAD * (late - self.budget * counted) / np.maximum(self.lead_s, 1.0)
        limited = np.minimum(np.maximum(step, -FASTEST), FASTEST)
        top = len(self.ladder) - 1 + FLOOR_RUNGS + FASTEST
        found: Floats = np.minimum(np.maximum(place + limited, 0.0), top)
        return found

    def _place(self, knob: Floats | float) -> Floats:
        up = np.sign(self.ladder[1] - self.ladder[0])
        return np.asarray(np.interp(up * knob, up * self.ladder, np.arange(len(self.ladder))), np.float64)

    def knob_at(self, place: Floats) -> Floats:
        """Return (runs,) values of the knob at places on the ladder."""
        between: Floats = np.interp(place, np.arange(len(self.ladder)), self.ladder)
        return np.where(place == self.start, self.first, between)
