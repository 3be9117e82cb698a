"""What placements come to: by the twin, or by a learned model of a job's performance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats, Integers
from models.placement.instances.job import Counts, ParallelJob
from models.placement.learned.reward import PlacementOutcome
from models.placement.performance.model import PerformanceModel
from models.placement.twin.follow import empty_state, follow_job
from models.placement.twin.station import STEP_S

SETTLE_S = 60.0
"""For which the twin is followed from empty queues; the last quarter of it counts."""
LONGEST_MS = 60_000.0
"""Latencies above this are told apart no more."""


class Evaluator(Protocol):
    """Says what placements come to."""

    def outcomes(
        self, placements: Sequence[Counts], before: Sequence[tuple[Counts, PlacementOutcome]]
    ) -> list[PlacementOutcome]:
        """Return what some placements come to; `before`: of each the one that it was made of, and what that is."""


@dataclass(frozen=True)
class FollowedEvaluator(ABC):
    """Follows what it is asked for, and keeps it: walks come by the same placements again and again."""

    _known: dict[bytes, PlacementOutcome] = field(default_factory=dict, init=False, compare=False, repr=False)

    def outcome(self, counts: Counts) -> PlacementOutcome:
        """Return what a placement comes to."""
        key = blake2b(counts.tobytes(), digest_size=16).digest()  # counts of a large job take more than their outcome
        if key not in self._known:
            self._known[key] = self.follow(counts)
        return self._known[key]

    def outcomes(
        self, placements: Sequence[Counts], before: Sequence[tuple[Counts, PlacementOutcome]]
    ) -> list[PlacementOutcome]:
        """Return what each placement comes to."""
        return [self.outcome(counts) for counts in placements]

    @abstractmethod
    def follow(self, counts: Counts) -> PlacementOutcome:
        """Follow a placement."""


@dataclass(frozen=True)
class TwinEvaluator(FollowedEvaluator):
    """The twin of many operators, at one rate of the sources, which do not wait: what is asked for is what counts.

    Attributes:
        job: of m operators.
        nodes: n of them.
        scale: multiple of the job's arrivals.
    """

    job: ParallelJob
    nodes: Nodes
    scale: float = 1.0

    def follow(self, counts: Counts) -> PlacementOutcome:
        """Return what a placement comes to; one that cannot keep up is told by how far it falls behind."""
        job, steps = replace(self.job, pending=np.inf), np.full(int(SETTLE_S / STEP_S), self.scale)
        _, course = follow_job(job, self.nodes, counts, empty_state(job, self.nodes), steps, SETTLE_S / 4)
        return PlacementOutcome(float(min(course.latency_ms[-1], LONGEST_MS)), course.load[-1].copy())


@dataclass(frozen=True)
class LearnedEvaluator:
    """A learned model of the job's performance, at its last steps. Pa-Stream paper, Algorithm 2, lines 5 and 6.

    Attributes:
        model: that was trained for the job and its nodes.
        window: (4, 1 + m n) rate and placement of the last steps, the newest last.
        cores: (n,) of an instance on each node, where these differ.
    """

    model: PerformanceModel
    window: Floats
    cores: Integers | int = 1

    def outcomes(
        self, placements: Sequence[Counts], before: Sequence[tuple[Counts, PlacementOutcome]]
    ) -> list[PlacementOutcome]:
        """Return what each placement comes to: latency by the model; loads as they were, shared by other cores.

        Where the model says another mean load than that, all operators' are moved to it alike.
        """
        seen = np.repeat(self.window[None], len(placements), axis=0)
        seen[:, -1, 1:] = [counts.reshape(-1) for counts in placements]
        found = []
        for counts, (old, was), (latency_ms, load) in zip(placements, before, self.model.predict(seen), strict=True):
            shared = was.load * (old * self.cores).sum(axis=1) / (counts * self.cores).sum(axis=1)
            mean = float(shared.mean())
            found.append(
                PlacementOutcome(float(latency_ms), shared * (load / mean) if mean > 0 else np.full_like(shared, load))
            )
        return found
