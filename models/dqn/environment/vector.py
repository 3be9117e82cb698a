"""Many jobs in the twin, one decision at a time: what the agent is trained in."""

from __future__ import annotations

import numpy as np

from models.dqn.agent.actions import allowed, floor, moved, near_advice, nearest
from models.dqn.agent.baseline import advise
from models.dqn.agent.observation import fresh, observe
from models.dqn.agent.reward import parts
from models.dqn.environment.randomisation import Drawn
from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import View
from models.twin.sim import run as twin
from models.twin.sim.state import begin


class VectorEnvironment:
    """Drawn runs from their first decision to their last."""

    def __init__(self, drawn: Drawn, seeds: Integers) -> None:
        """At the first decision."""
        self.drawn, self.look = drawn, 0
        self._state = begin(drawn.jobs, drawn.first, seeds)
        self._memory, self._advised = fresh(len(drawn.load.row)), drawn.baseline.fresh(len(drawn.load.row))
        self.view: View
        self.seen: np.ndarray
        self.mask: np.ndarray
        self.advice: Integers
        self._look()

    @property
    def over(self) -> bool:
        """Whether the last decision has been made; the job itself would go on."""
        return self.look >= self.drawn.decisions

    @property
    def weight(self) -> Floats:
        """(runs, 2) worth of the reward's parts."""
        price = self.drawn.facts.of(len(self.drawn.load.row)).price
        return np.stack([np.ones(len(price)), price], axis=1)

    def step(self, moves: Integers) -> Floats:
        """(runs, 2) the reward's parts of one decision; `seen` and `mask` are what comes then."""
        drawn, before = self.drawn, self._account()
        pace, every, use = drawn.pace_s, drawn.looks.every_s, drawn.baseline.busy
        first = self.look * pace
        asked = moved(self.view, moves, floor(self.view, use))
        for now in range(first, first + pace, every):
            if now > first:  # between two decisions only the floor moves the target, as in `policy.Dqn`
                between = twin.view(self._state, drawn.jobs, drawn.load, drawn.looks, now, None)
                asked = np.maximum(between.target, floor(between, use))
            twin.act(self._state, drawn.jobs, asked, now)
            twin.advance(self._state, drawn.jobs, drawn.load, now, now + every)
        self.look += 1
        self._look()
        account = self._account() - before
        account[1] = np.clip(account[1], 0, pace)
        return parts(account, drawn.needed[:, self.look - 1], drawn.jobs.facts["most"], float(pace))

    def _account(self) -> Floats:
        """(3, runs) executor-seconds, seconds over the target with those that still wait, changes; so far."""
        x, now = self._state.x, self.look * self.drawn.pace_s
        waits = np.maximum(now - x["oldest"] - self.drawn.jobs.facts["latency_target_s"], 0.0)
        return np.stack([x["paid"], x["over"] + waits, x["changes"]])

    def _look(self) -> None:
        drawn, facts = self.drawn, self.drawn.jobs.facts
        ahead = drawn.said.at(min(self.look, drawn.decisions - 1))
        self.view = twin.view(self._state, drawn.jobs, drawn.load, drawn.looks, self.look * drawn.pace_s, ahead)
        self._advised, advice = advise(drawn.baseline, self._advised, self.view)
        self._memory, self.seen = observe(self._memory, self.view, drawn.facts, advice)
        within = allowed(self.view.target, facts["least"], facts["most"])
        self.mask = near_advice(within, self.view.target, advice)
        self.advice = nearest(self.mask, self.view.target, advice.target)
