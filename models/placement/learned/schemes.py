"""Placements proposed by a trained network, from the one that is in force. Pa-Stream paper, Algorithms 3 and 4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.placement.graph import Floats
from models.placement.instances.job import Counts
from models.placement.learned.actions import draw_length
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.space import MoveSpace

EPISODES, STEPS, EXPLORE, TEMPERATURE = 20, 16, 0.2, 0.5


class Proposal(NamedTuple):
    """A placement, what it is expected to come to, and its score beside the one at the start."""

    counts: Counts
    outcome: PlacementOutcome
    score: float


def softmax_shares(values: Floats, mask: np.ndarray, temperature: float = TEMPERATURE) -> Floats:
    """Return (A,) shares exp((Q - max Q) ÷ temperature) of all that are allowed; 0 of others."""
    best = values[mask].max()
    share = np.where(mask, np.exp(np.where(mask, values - best, 0.0) / temperature), 0.0)
    return share / share.sum()


def select_by_share(share: Floats, drawn: float) -> int:
    """Return the first index up to which the shares come to a number of [0, 1); by rounding, the last with any."""
    reached = np.flatnonzero((np.cumsum(share) >= drawn) & (share > 0))
    return int(reached[0]) if len(reached) else int(np.flatnonzero(share)[-1])


def _each_once(values: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Values that are asked of the network once for each observation: walks come by the same ones again and again."""
    known: dict[bytes, Floats] = {}

    def told(seen: Floats) -> Floats:
        if (key := seen.tobytes()) not in known:
            known[key] = values(seen)
        return known[key]

    return told


@dataclass(frozen=True)
class Proposer:
    """Proposes placements of a job on nodes.

    Attributes:
        space: placements of the job.
        evaluator: says what a placement comes to.
        weights: how that is weighed.
        values: from an observation to the (2 m n,) value of each move.
        observe: from a placement and what it comes to, to an observation.
    """

    space: MoveSpace
    evaluator: Evaluator
    weights: RewardWeights
    values: Callable[[Floats], Floats]
    observe: Callable[[Counts, PlacementOutcome], Floats]

    def propose(self, start: Counts, outcome: PlacementOutcome, seed: int, episodes: int = EPISODES) -> list[Proposal]:
        """Return the best placement of each of some walks from the start, the best first, each once.

        A walk's move is, by one draw, in a tenth of the cases any that is allowed, in a tenth one by its share
        (Algorithm 4), else the best. Only placements better than the start are proposed.

        Args:
            start: (m, n) instances in force.
            outcome: what they come to.
            seed: equal ones give equal answers.
            episodes: walks.
        """
        random, least = np.random.default_rng(seed), self.weights.reward(outcome, outcome)
        found: dict[bytes, Proposal] = {}
        once = replace(self, values=_each_once(self.values))
        for _ in range(episodes):
            best = Proposal(start, outcome, least)
            for step in once._walk(start, outcome, random):
                if step.score > best.score:
                    best = step
            if best.score > least:
                found[best.counts.tobytes()] = best
        return sorted(found.values(), key=lambda one: -one.score)

    def _walk(self, counts: Counts, outcome: PlacementOutcome, random: np.random.Generator) -> list[Proposal]:
        start, steps = outcome, []
        for _ in range(STEPS):
            most = self.space.farthest(counts)
            if not (most >= 1).any():
                break
            index = self._choose(counts, outcome, most >= 1, random)
            after = self.space.after(counts, index, draw_length(int(most[index]), random))
            outcome = self.evaluator.outcomes([after], [(counts, outcome)])[0]
            counts = after
            steps.append(Proposal(counts, outcome, self.weights.reward(start, outcome)))
        return steps

    def _choose(self, counts: Counts, outcome: PlacementOutcome, mask: np.ndarray, random: np.random.Generator) -> int:
        drawn = random.random()
        if drawn < EXPLORE / 2:
            return int(random.choice(np.flatnonzero(mask)))
        values = self.values(self.observe(counts, outcome))
        if drawn < EXPLORE:
            return select_by_share(softmax_shares(values, mask), random.random())
        return int(np.where(mask, values, -np.inf).argmax())
