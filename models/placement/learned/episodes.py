"""Placements as states of episodes: what the learner sees, may do and is paid. Pa-Stream paper, eq. 14 to 18."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from models.dqn.learner.replay import StepReturn
from models.placement.graph import Floats, Integers
from models.placement.instances.job import Counts
from models.placement.learned.actions import draw_length
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import MOST_LOAD, PlacementOutcome, RewardWeights
from models.placement.learned.space import MoveSpace

STEPS = 32
"""Moves of an episode; then another placement is drawn. There are no terminal states."""
MOST_LATENCY = 20.0
_NO_ADVICE: Integers | None = None


def observe(slots: Integers, counts: Counts, outcome: PlacementOutcome, usual_ms: float) -> Floats:
    """Return the (m n + 1 + m,) observation: instances over slots, latency, and loads (3 at most).

    Latency as log(1 + it ÷ a usual one), of at most 20 times that.
    """
    latency = min(outcome.latency_ms / usual_ms, MOST_LATENCY)
    return np.concatenate([(counts / slots).reshape(-1), [np.log1p(latency)], np.minimum(outcome.load, MOST_LOAD)])


class PlacementEpisodes:
    """Episodes side by side; an environment of `models.dqn.learner`.

    Attributes:
        seen: (runs, m n + 1 + m) observations now.
        mask: (runs, 2 m n) moves that are allowed now.
        weight: (runs, 1) ones: the reward has one part.
        advice: None.
    """

    def __init__(
        self, space: MoveSpace, evaluators: Sequence[Evaluator], weights: RewardWeights, usual_ms: float,
        runs: int, seed: int, start: Counts | None = None,
    ) -> None:  # fmt: skip
        """Episodes of a job on nodes.

        Args:
            space: placements of the job.
            evaluators: say what placements come to, each at a rate of its own: one for each episode, in turn.
            weights: how that is weighed.
            usual_ms: latency of an ordinary placement, the unit of observations.
            runs: side by side.
            seed: of the placements that are drawn, and of how far moves go.
            start: a placement from which half of the episodes begin; None: all are drawn.
        """
        self._space, self._usual_ms, self._weights = space, usual_ms, weights
        self._turns = itertools.cycle(evaluators)
        self._evaluator = evaluators[0]
        self._random, self._start, self._left = np.random.default_rng(seed), start, STEPS
        self._counts: list[Counts] = []
        self._outcomes: list[PlacementOutcome] = []
        self.weight, self.advice = np.ones((runs, 1)), _NO_ADVICE
        self._begin(runs)

    def step(self, moves: Integers) -> StepReturn:
        """Make a move in every episode, as far as is drawn; the attributes are then of the next state.

        Where no move is allowed, none is made.
        """
        after = []
        for counts, index in zip(self._counts, moves, strict=True):
            most = int(self._space.farthest(counts)[index])
            length = draw_length(most, self._random)
            after.append(self._space.after(counts, int(index), length) if most >= 1 else counts)
        before = list(zip(self._counts, self._outcomes, strict=True))
        outcomes = self._evaluator.outcomes(after, before)
        reward = [self._weights.reward(old, new) for (_, old), new in zip(before, outcomes, strict=True)]
        self._counts, self._outcomes = after, outcomes
        self._look()
        self._left -= 1
        reached = self.seen, self.mask
        ended = self._left == 0
        if ended:
            self._begin(len(after))
        return StepReturn(np.array(reward)[:, None], *reached, np.full(len(after), ended))

    def _begin(self, runs: int) -> None:
        self._left, self._evaluator = STEPS, next(self._turns)
        drawn = [self._space.draw(self._random) for _ in range(runs)]
        if self._start is not None:
            drawn[: runs // 2] = [self._start] * (runs // 2)
        self._counts = drawn
        nothing = PlacementOutcome(self._usual_ms, np.zeros(self._space.shape[0]))
        self._outcomes = self._evaluator.outcomes(drawn, [(one, nothing) for one in drawn])
        self._look()

    def _look(self) -> None:
        both = zip(self._counts, self._outcomes, strict=True)
        self.seen = np.array([observe(self._space.slots, *one, self._usual_ms) for one in both])
        self.mask = np.array([self._space.farthest(counts) >= 1 for counts in self._counts])
