"""Groups of runs of drawn jobs and loads, as the environment that a learner learns on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.dqn.environment.randomisation import drawn
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.dqn.learner.returns import StepReturn
from models.dqn.learner.settings import TrainingLength
from models.policy.core.capacity import Floats, Integers
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
        self._fleets = [self._new() for _ in range(training.groups)]
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
        self.seen = np.concatenate([vector.seen for vector in self._fleets])
        self.mask = np.concatenate([vector.mask for vector in self._fleets])
        self.advice: Integers | None = np.concatenate([vector.advice for vector in self._fleets])
        self.weight: Floats = np.concatenate([vector.weight for vector in self._fleets])

    def step(self, moves: Integers) -> StepReturn:
        """Act in every run of every group."""
        runs = self._training.runs
        gained = [vector.step(moves[i * runs : (i + 1) * runs]) for i, vector in enumerate(self._fleets)]
        after, mask = np.concatenate([f.seen for f in self._fleets]), np.concatenate([f.mask for f in self._fleets])
        # Groups start over one after the other, so that the buffer never holds one hour of the day alone.
        self._number += 1
        self.sample.append(after[self._number % SPARSE :: SPARSE])
        spread = self._training.decisions // len(self._fleets)
        young = [i * spread for i in range(len(self._fleets))]
        cut = [f.over or (self._number == young[i] and i > 0) for i, f in enumerate(self._fleets)]
        self._fleets = [self._new() if gone else vector for vector, gone in zip(self._fleets, cut, strict=True)]
        self._show()
        return StepReturn(np.concatenate(gained), after, mask, np.zeros(len(moves), bool), np.repeat(cut, runs))
