"""Placements proposed by a trained network, from the one that is in force. Pa-Stream paper, Algorithms 3 and 4."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
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
WALKS, EVALUATIONS = 5, 256
"""Walks before a proposal looks around, and placements that it looks at in all, at most: as many as twenty come by."""
NEAR = 5
"""Best placements of which every single move is looked at: fewer end at one that is best among its moves alone."""


class Proposal(NamedTuple):
    """A placement, what it is expected to come to, and its score beside the one at the start."""

    counts: Counts
    outcome: PlacementOutcome
    score: float


def softmax_shares(values: Floats, mask: np.ndarray) -> Floats:
    """Return (A,) shares exp((Q - max Q) ÷ TEMPERATURE) of all that are allowed; 0 of others."""
    best = values[mask].max()
    share = np.where(mask, np.exp(np.where(mask, values - best, 0.0) / TEMPERATURE), 0.0)
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

    def propose(self, start: Counts, outcome: PlacementOutcome, seed: int) -> list[Proposal]:
        """Return placements that were looked at and are better than the start, the best first.

        Some walks from the start come first. Then of the best placements every single move is looked at, by the
        network's values, in any better one that is found on the way again: walks alone pass by what is a move away.
        For an evaluator that knows (the twin): of one that is learned this finds what it errs by (`walk`).

        Args:
            start: (m, n) instances in force.
            outcome: what they come to.
            seed: equal ones give equal answers.
        """
        once, random = replace(self, values=_each_once(self.values)), np.random.default_rng(seed)
        first = Proposal(start, outcome, self.weights.reward(outcome, outcome))
        seen = {start.tobytes(): first}
        for _ in range(WALKS):
            for step in once._walk(start, outcome, random):
                seen.setdefault(step.counts.tobytes(), step)
        once._look_around(first, seen)
        return sorted((one for one in seen.values() if one.score > first.score), key=lambda one: -one.score)

    def walk(self, start: Counts, outcome: PlacementOutcome, seed: int, episodes: int = EPISODES) -> list[Proposal]:
        """Return the best placement of each of some walks from the start, the best first, each once.

        Only placements better than the start are proposed.

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
            best = max(once._walk(start, outcome, random), key=lambda one: one.score, default=None)
            if best is not None and best.score > least:
                found[best.counts.tobytes()] = best
        return sorted(found.values(), key=lambda one: -one.score)

    def _look_around(self, first: Proposal, seen: dict[bytes, Proposal]) -> None:
        """Look at moves from the best placement that has any left, until the NEAR best have none."""
        near: dict[bytes, Iterator[Counts]] = {}

        def not_seen(key: bytes) -> Counts | None:
            if key not in near:
                near[key] = self._moves_of(seen[key])
            return next((after for after in near[key] if after.tobytes() not in seen), None)

        while len(seen) <= EVALUATIONS:
            best = heapq.nlargest(NEAR, seen, key=lambda key: seen[key].score)
            found = next(((key, after) for key in best if (after := not_seen(key)) is not None), None)
            if found is None:
                return
            origin, after = seen[found[0]], found[1]
            (outcome,) = self.evaluator.outcomes([after], [(origin.counts, origin.outcome)])
            seen[after.tobytes()] = Proposal(after, outcome, self.weights.reward(first.outcome, outcome))

    def _moves_of(self, origin: Proposal) -> Iterator[Counts]:
        """Yield what each single move leads to, the one of most value first."""
        allowed = np.flatnonzero(self.space.farthest(origin.counts) >= 1)
        values = self.values(self.observe(origin.counts, origin.outcome)) if len(allowed) else np.zeros(0)
        for index in allowed[np.argsort(-values[allowed], kind="stable")]:
            yield self.space.after(origin.counts, int(index), 1)

    def _walk(self, counts: Counts, outcome: PlacementOutcome, random: np.random.Generator) -> list[Proposal]:
        """The placements of a walk, whose moves are drawn by Algorithm 4."""
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
        """A move, by one draw: in a tenth of the cases any that is allowed, in a tenth by the shares, else the best."""
        drawn = random.random()
        if drawn < EXPLORE / 2:
            return int(random.choice(np.flatnonzero(mask)))
        values = self.values(self.observe(counts, outcome))
        if drawn < EXPLORE:
            return select_by_share(softmax_shares(values, mask), random.random())
        return int(np.where(mask, values, -np.inf).argmax())
