"""Many simulated jobs at once, one decision at a time: the environment a DQN policy is trained in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.dqn.agent.actions import (
    advise,
    allowed_moves,
    apply_moves,
    least_executors,
    moves_near_advice,
    nearest_move,
    reward_parts,
)
from models.dqn.agent.observation import fresh, observe
from models.dqn.environment.randomisation import DrawnRuns, draw_runs
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.learner.replay import StepReturn
from models.dqn.learner.settings import TrainingLength
from models.policy.core.capacity import Floats, Integers
from models.twin.sim import run as twin
from models.twin.sim.arrivals import running_totals
from models.twin.sim.job import TwinJob
from models.twin.sim.state import begin


class VectorEnvironment:
    """Drawn runs as a reinforcement-learning environment, from their first decision to their last.

    Attributes:
        drawn: the runs.
        look: decisions made so far.
        view: what the policy observes now.
        seen: (runs, F) observations.
        mask: (runs, A) allowed moves.
        advice: (runs,) index of the move nearest to the baseline's target.
    """

    def __init__(self, drawn: DrawnRuns, seeds: Integers) -> None:
        """At the first decision."""
        self.drawn, self.look = drawn, 0
        self._produced_s = running_totals(np.sign(np.diff(drawn.load.arrived)))
        self._state = begin(drawn.jobs, drawn.first, seeds)
        self._memory, self._advised = fresh(len(drawn.load.row)), drawn.baseline.fresh(len(drawn.load.row))
        self._look()

    @property
    def over(self) -> bool:
        """Whether the last decision has been made, by a time limit: the jobs themselves have no end."""
        return self.look >= self.drawn.decisions

    @property
    def weight(self) -> Floats:
        """(runs, 2) weights of the reward's parts: 1 and the price of a second over the target."""
        price = self.drawn.facts.broadcast(len(self.drawn.load.row)).price
        return np.stack([np.ones(len(price)), price], axis=1)

    def step(self, moves: Integers) -> Floats:
        """Make a move in every run and simulate to the next decision, to which `seen`, `mask` and `advice` then belong.

        Before that, and at each observation on the way, the target is raised to the executors that the observed rate
        needs.

        Args:
            moves: (runs,) indices of `MOVES`.

        Returns:
            (runs, 2) reward of the step, both parts as shares and negated: executors paid beyond those needed, over the
            most allowed; and seconds over the latency target, over the step's seconds (see `actions.reward_parts`).

        Raises:
            IndexError: the last decision has been made (`over`), or no such move.
        """
        drawn, before = self.drawn, self._account()
        pace, every, use = drawn.pace_s, drawn.looks.every_s, drawn.baseline.busy
        first = self.look * pace
        asked = apply_moves(self.view, moves, least_executors(self.view, use))
        for now in range(first, first + pace, every):
            if now > first:  # between two decisions only the floor moves the target, as in `policy.Dqn`
                between = twin.observe(self._state, drawn.jobs, drawn.load, drawn.looks, now, None)
                asked = np.maximum(between.target, least_executors(between, use))
            twin.set_targets(self._state, drawn.jobs, asked, now)
            twin.advance(self._state, drawn.jobs, drawn.load, now, now + every)
        self.look += 1
        self._look()
        account = self._account() - before
        return reward_parts(account, drawn.needed[:, self.look - 1], drawn.jobs.facts["most"], float(pace))

    def _account(self) -> Floats:
        """(3, runs) executor-seconds, seconds over the target with those that still wait, changes; so far."""
        x, now, rows = self._state.x, self.look * self.drawn.pace_s, self.drawn.load.row
        oldest = x["oldest"].astype(int)
        due = np.ceil(now - self.drawn.jobs.facts["latency_target_s"]).astype(int)  # what came before it is late
        waits = self._produced_s[rows, np.maximum(due, oldest)] - self._produced_s[rows, oldest]
        return np.stack([x["paid"], x["over"] + waits, x["changes"]])

    def _look(self) -> None:
        drawn, facts = self.drawn, self.drawn.jobs.facts
        ahead = drawn.forecasts.at(self.look)
        self.view = twin.observe(self._state, drawn.jobs, drawn.load, drawn.looks, self.look * drawn.pace_s, ahead)
        self._advised, advice = advise(drawn.baseline, self._advised, self.view)
        self._memory, self.seen = observe(self._memory, self.view, drawn.facts, advice)
        within = allowed_moves(self.view.target, facts["least"], facts["most"])
        self.mask = moves_near_advice(within, self.view.target, advice)
        self.advice = nearest_move(self.mask, self.view.target, advice.target)


SPARSE = 16
"""One of so many observations is kept, for `Familiar`."""


class GroupedEnvironment:
    """Several groups of drawn runs as one environment; a group that has ended is replaced by a newly drawn one.

    Attributes:
        seen: (runs, F) observations of all groups.
        mask: (runs, A) allowed moves.
        weight: (runs, 2) weights of the reward's parts.
        advice: (runs,) index of the move nearest to the baseline's target.
        sample: one of 16 observations so far, from which `Familiar` is computed.
    """

    def __init__(
        self, training: TrainingLength, traces: Sequence[RecordedLoad], jobs: Sequence[TwinJob], seed: int
    ) -> None:
        """The groups are at different places of their runs from the start."""
        self._training, self._traces, self._jobs = training, traces, jobs
        self._chance = np.random.default_rng(seed)
        self._groups = [self._new() for _ in range(training.groups)]
        self._number = 0
        self.sample: list[np.ndarray] = []
        self._show()

    def _new(self) -> VectorEnvironment:
        how = self._training
        made = draw_runs(
            how.runs, how.decisions, self._traces, self._chance, self._jobs, how.price, how.lead_s, how.batch_s
        )  # fmt: skip
        return VectorEnvironment(made, self._chance.integers(2**62, size=how.runs))

    def _show(self) -> None:
        shown = ((vector.seen, vector.mask, vector.weight, vector.advice) for vector in self._groups)
        self.seen, self.mask, self.weight, advice = map(np.concatenate, zip(*shown, strict=True))
        self.advice: Integers | None = advice

    def step(self, moves: Integers) -> StepReturn:
        """Make a move in every run of every group, and draw anew the groups that have ended.

        In the first round group i is cut after `i * (decisions // groups)` decisions, so that later they end at
        different times. One of 16 observations is appended to `sample`.

        Args:
            moves: (runs,) indices of `MOVES`, group by group.

        Returns:
            (runs, 2) rewards (`VectorEnvironment.step`), observations (runs, 40) and masks (runs, 6) after the move, of
            the old runs, and (runs,) which were cut.

        Raises:
            ValueError: `moves` cannot be split evenly among the groups.
            IndexError: no such move.
        """
        shares = np.split(moves, len(self._groups))
        reward = [vector.step(mine) for vector, mine in zip(self._groups, shares, strict=True)]
        self._show()
        after, mask = self.seen, self.mask
        # Groups start over one after the other, so that the buffer always holds different stages of a run.
        self._number += 1
        self.sample.append(after[self._number % SPARSE :: SPARSE])
        spread = self._training.decisions // len(self._groups)
        cut = [vector.over or (self._number == i * spread and i > 0) for i, vector in enumerate(self._groups)]
        self._groups = [self._new() if gone else vector for vector, gone in zip(self._groups, cut, strict=True)]
        self._show()
        return StepReturn(np.concatenate(reward), after, mask, np.repeat(cut, self._training.runs))
