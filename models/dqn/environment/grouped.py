"""Groups of runs of drawn jobs and loads, as the environment that a learner learns on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.dqn.environment.randomisation import drawn
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.dqn.learner.replay import StepReturn
from models.dqn.learner.settings import TrainingLength
from models.policy.core.capacity import Integers
from models.twin.sim.job import TwinJob

SPARSE = 16
"""Every so many observations one is kept to know what the agent was trained on."""


class GroupedEnvironment:
    """Groups of runs as one environment; a group that is over gives way to a new one."""

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
        made = drawn(
            how.runs, how.decisions, self._traces, self._chance, self._jobs, price=how.price, lead_s=how.lead_s
        )
        return VectorEnvironment(made, self._chance.integers(2**62, size=how.runs))

    def _show(self) -> None:
        shown = ((vector.seen, vector.mask, vector.weight, vector.advice) for vector in self._groups)
        self.seen, self.mask, self.weight, advice = map(np.concatenate, zip(*shown, strict=True))
        self.advice: Integers | None = advice

    def step(self, moves: Integers) -> StepReturn:
        """Act in every run of every group."""
        shares = np.split(moves, len(self._groups))
        gained = [vector.step(mine) for vector, mine in zip(self._groups, shares, strict=True)]
        self._show()
        after, mask = self.seen, self.mask
        # Groups start over one after the other, so that the buffer never holds one hour of the day alone.
        self._number += 1
        self.sample.append(after[self._number % SPARSE :: SPARSE])
        spread = self._training.decisions // len(self._groups)
        cut = [vector.over or (self._number == i * spread and i > 0) for i, vector in enumerate(self._groups)]
        self._groups = [self._new() if gone else vector for vector, gone in zip(self._groups, cut, strict=True)]
        self._show()
        return StepReturn(np.concatenate(gained), after, mask, np.repeat(cut, self._training.runs))
