"""Searches that a trained network is held against, at as many evaluations as it took.

An evaluation is of a placement that was not looked at before: who comes by one again need not ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.placement.instances.job import Counts
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import PlacementOutcome
from models.placement.learned.space import MoveSpace

Score = Callable[[Counts], float]
DRAWS = 10
"""For each placement that is looked at: of small jobs most were drawn before."""


@dataclass
class CountingEvaluator:
    """An evaluator that counts how many different placements it was asked for."""

    evaluator: Evaluator
    _known: set[bytes] = field(default_factory=set, init=False, repr=False)

    @property
    def asked(self) -> int:
        """Different placements so far."""
        return len(self._known)

    def outcomes(
        self, placements: Sequence[Counts], before: Sequence[tuple[Counts, PlacementOutcome]]
    ) -> list[PlacementOutcome]:
        """Return what each placement comes to."""
        self._known.update(counts.tobytes() for counts in placements)
        return self.evaluator.outcomes(placements, before)


def greedy_search(space: MoveSpace, start: Counts, score: Score, evaluations: int) -> float:
    """Return the score that the best single moves in turn come to, while they are better and evaluations are left."""
    counts, best = start, score(start)
    known = {start.tobytes(): best}
    while True:
        near = {one.tobytes(): one for at in np.flatnonzero(space.farthest(counts) >= 1)
                for one in [space.after(counts, int(at), 1)]}  # fmt: skip
        new = [key for key in near if key not in known][: evaluations + 1 - len(known)]
        known |= {key: score(near[key]) for key in new}
        found = max((key for key in near if key in known), key=known.__getitem__, default=None)
        if found is None or known[found] <= best:
            return float(best)
        counts, best = near[found], known[found]


def random_search(space: MoveSpace, score: Score, evaluations: int, seed: int) -> float:
    """Return the best score of so many different placements that are drawn; of fewer where few come by chance."""
    random, found = np.random.default_rng(seed), dict[bytes, Counts]()
    for _ in range(DRAWS * evaluations):
        if len(found) >= evaluations:
            break
        drawn = space.draw(random)
        found.setdefault(drawn.tobytes(), drawn)
    return float(max((score(one) for one in found.values()), default=-np.inf))
