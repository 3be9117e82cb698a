"""A network trained on placements of one job. Pa-Stream paper, Algorithm 1, by the learner that all policies share.

OURS departs from the paper's table 4 (PAPER): double dueling Q-learning, a target network that follows slowly and acts,
exploration and learning rate that fall linearly, half as many transitions, from 16 runs at once, fewer updates and
trials, and a discount of 0.9 in place of 0.99: an episode is of 32 moves, and a placement is worth what it comes to at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from models.dqn.learner.learner import Learner, Values
from models.dqn.learner.settings import DEFAULT, LearnerSettings
from models.dqn.learner.threads import one_thread
from models.placement.graph import Floats, Integers
from models.placement.instances.job import Counts
from models.placement.learned.episodes import STEPS, PlacementEpisodes, observe
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.schemes import Proposer
from models.placement.learned.space import MoveSpace

LEARNER: LearnerSettings = replace(
    DEFAULT, gamma=0.9, steps=1, buffer=10_000, batch=64, learning_rate=1e-3, warm=1_000, updates=4, explore_for=0.6,
    clip=10.0,
)  # fmt: skip


@dataclass(frozen=True)
class PlacementTraining:
    """How a network is trained.

    Attributes:
        learner: hyper-parameters.
        runs: episodes at once.
        transitions: moves that are learned from.
        trials: fixed starts, from which it is evaluated.
        every: updates between two evaluations.
    """

    learner: LearnerSettings
    runs: int
    transitions: int
    trials: int
    every: int


OURS = PlacementTraining(LEARNER, runs=16, transitions=16_000, trials=12, every=500)
PAPER = PlacementTraining(
    replace(
        LEARNER, gamma=0.99, double=False, dueling=False, acts_held=False, last_rate=1.0, updates=1,
        copy_every=10 * STEPS, copy_share=1.0, explore_decay=(0.995, STEPS),
    ),
    runs=1, transitions=1_000 * STEPS, trials=50, every=20 * STEPS,
)  # fmt: skip
"""Table 4 and Algorithm 1, and our specification where these are silent; an update for each move of 1,000 episodes.

What is observed (`episodes.observe`) differs from our specification, which has latency ÷ a usual one, and neither
logarithm nor bounds.
"""


@dataclass(frozen=True, eq=False)
class PlacementModel:
    """A trained network of one job on its nodes.

    Attributes:
        network: from an observation to values.
        usual_ms: unit of latencies in observations.
        curve: mean score of the trials at each evaluation, from untrained on.
    """

    network: Values
    usual_ms: float
    curve: tuple[float, ...]

    def values(self, seen: Floats) -> Floats:
        """Return the (2 m n,) value of each move at an observation."""
        with torch.no_grad():
            found = self.network(torch.from_numpy(np.ascontiguousarray(seen[None], np.float32)))
        return found[0, :, 0].numpy().astype(float)

    def proposer(self, space: MoveSpace, evaluator: Evaluator, weights: RewardWeights) -> Proposer:
        """Return what proposes placements by this network."""
        return Proposer(space, evaluator, weights, self.values, partial(self._observe, space.slots))

    def _observe(self, slots: Integers, counts: Counts, outcome: PlacementOutcome) -> Floats:
        return observe(slots, counts, outcome, self.usual_ms)


def train_placement(
    space: MoveSpace, evaluators: Sequence[Evaluator], weights: RewardWeights, seed: int,
    start: Counts | None = None, how: PlacementTraining = OURS,
) -> PlacementModel:  # fmt: skip
    """Train a network on placements of a job; the same arguments give the same network.

    Of the untrained one and those that are evaluated on the way the one is kept whose best placements, on walks from
    fixed starts that are not learned from, score most in the mean.

    Args:
        space: placements of the job.
        evaluators: say what placements come to, each at a rate of its own; trials are of each in turn.
        weights: how that is weighed.
        seed: of everything.
        start: placement in force, from which half of the episodes begin; None: all are drawn.
        how: it is trained.
    """
    with one_thread():
        random = np.random.default_rng(seed + 1)
        unknown = PlacementOutcome(0.0, np.zeros(space.shape[0]))
        trials = [
            (counts, evaluator.outcomes([counts], [(counts, unknown)])[0], evaluator)
            for at in range(how.trials)
            for counts, evaluator in [(space.draw(random), evaluators[at % len(evaluators)])]
        ]
        usual_ms = float(np.median([outcome.latency_ms for _, outcome, _ in trials]))
        episodes = PlacementEpisodes(space, evaluators, weights, usual_ms, how.runs, seed, start)
        learner = Learner(episodes, how.learner, seed)
        curve: list[float] = []
        best: tuple[float, dict[str, torch.Tensor]] = (-np.inf, {})
        reports = learner.learn(how.transitions, how.every)
        while True:
            model = PlacementModel(learner.held, usual_ms, ())
            scores = [
                _best_score(model.proposer(space, evaluator, weights), counts, outcome, at)
                for at, (counts, outcome, evaluator) in enumerate(trials)
            ]
            curve.append(float(np.mean(scores)))
            if curve[-1] > best[0]:
                best = curve[-1], {name: part.clone() for name, part in learner.held.state_dict().items()}
            if next(reports, None) is None:
                break
        learner.held.load_state_dict(best[1])
    return PlacementModel(learner.held, usual_ms, tuple(curve))


def _best_score(proposer: Proposer, counts: Counts, outcome: PlacementOutcome, seed: int) -> float:
    """The score of the best placement on one walk; of the one it begins from where none is better."""
    found = proposer.walk(counts, outcome, seed, episodes=1)
    return found[0].score if found else proposer.weights.reward(outcome, outcome)
