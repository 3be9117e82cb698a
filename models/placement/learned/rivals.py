"""Searches that a trained network is held against, at as many evaluations as it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.placement.instances.job import Counts
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import PlacementOutcome
from models.placement.learned.space import MoveSpace

Score = Callable[[Counts], float]


@dataclass
class CountingEvaluator:
    """An evaluator that counts how many placements it was asked for."""

    evaluator: Evaluator
    asked: int = field(default=0)

    def outcomes(
        self, placements: Sequence[Counts], before: Sequence[tuple[Counts, PlacementOutcome]]
    ) -> list[PlacementOutcome]:
        """Return what each placement comes to."""
        self.asked += len(placements)
        return self.evaluator.outcomes(placements, before)


def greedy_search(space: MoveSpace, start: Counts, score: Score, evaluations: int) -> float:
    """Return the score that the best single moves in turn come to, while they are better and evaluations are left."""
    counts, best = start, score(start)
    while evaluations > 0:
        tried = [space.after(counts, int(at), 1) for at in np.flatnonzero(space.farthest(counts) >= 1)][:evaluations]
        evaluations -= len(tried)
        scores = [score(one) for one in tried]
        if not scores or max(scores) <= best:
            break
        best = max(scores)
        counts = tried[int(np.argmax(scores))]
    return float(best)


def random_search(space: MoveSpace, score: Score, evaluations: int, seed: int) -> float:
    """Return the best score of so many placements that are drawn."""
    random = np.random.default_rng(seed)
    return float(max((score(space.draw(random)) for _ in range(evaluations)), default=-np.inf))
