"""A network trained on placements of one job. Pa-Stream paper, Algorithm 1, by the learner that all policies share.

That is double dueling Q-learning, whose target network follows slowly and whose exploration falls linearly; the paper
copies the target network every ten episodes and multiplies epsilon. A discount of 0.9 in place of 0.99: an episode is
of 32 moves, and a placement is worth what it comes to at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from models.dqn.learner.learner import Learner, Values
from models.dqn.learner.settings import DEFAULT, LearnerSettings
from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import Counts, ParallelJob
from models.placement.learned.episodes import PlacementEpisodes, observe
from models.placement.learned.evaluator import Evaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.schemes import Proposer

RUNS = 16
LEARNER: LearnerSettings = replace(
    DEFAULT, gamma=0.9, steps=1, buffer=10_000, batch=64, learning_rate=1e-3, warm=1_000, updates=4, explore_for=0.6,
    clip=10.0,
)  # fmt: skip
TRANSITIONS, TRIALS, EVERY = 16_000, 12, 500


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

    def proposer(self, job: ParallelJob, nodes: Nodes, evaluator: Evaluator, weights: RewardWeights) -> Proposer:
        """Return what proposes placements by this network."""
        return Proposer(job, nodes, evaluator, weights, self.values, partial(self._observe, nodes))

    def _observe(self, nodes: Nodes, counts: Counts, outcome: PlacementOutcome) -> Floats:
        return observe(nodes, counts, outcome, self.usual_ms)


def train_placement(
    job: ParallelJob, nodes: Nodes, evaluator: Evaluator, weights: RewardWeights, seed: int,
    start: Counts | None = None, transitions: int = TRANSITIONS, told: Callable[[float], None] = lambda _: None,
) -> PlacementModel:  # fmt: skip
    """Train a network on placements of a job; the same arguments give the same network.

    Of the untrained one and those that are evaluated on the way the one is kept whose best placements, on walks from
    fixed starts that are not learned from, score most in the mean.

    Args:
        job: of m operators.
        nodes: n of them.
        evaluator: says what placements come to.
        weights: how that is weighed.
        seed: of everything.
        start: placement in force, from which half of the episodes begin; None: all are drawn.
        transitions: moves that are learned from.
        told: called with each evaluation's score.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        random = np.random.default_rng(seed + 1)
        first = [draw_counts(job, nodes, random) for _ in range(TRIALS)]
        unknown = PlacementOutcome(0.0, np.zeros(job.operators))
        trials = list(zip(first, evaluator.outcomes(first, [(one, unknown) for one in first]), strict=True))
        usual_ms = float(np.median([outcome.latency_ms for _, outcome in trials]))
        episodes = PlacementEpisodes(job, nodes, evaluator, weights, usual_ms, RUNS, seed, start)
        learner = Learner(episodes, LEARNER, seed)
        curve: list[float] = []
        best: tuple[float, dict[str, torch.Tensor]] = (-np.inf, {})
        reports = learner.learn(transitions, EVERY)
        while True:
            model = PlacementModel(learner.held, usual_ms, ())
            proposer = model.proposer(job, nodes, evaluator, weights)
            found = [(proposer.propose(*trial, seed=at, episodes=1), trial[1]) for at, trial in enumerate(trials)]
            scores = [each[0].score if each else weights.reward(outcome, outcome) for each, outcome in found]
            curve.append(float(np.mean(scores)))
            told(curve[-1])
            if curve[-1] > best[0]:
                best = curve[-1], {name: part.clone() for name, part in learner.held.state_dict().items()}
            if next(reports, None) is None:
                break
        learner.held.load_state_dict(best[1])
    finally:
        torch.set_num_threads(before)
    return PlacementModel(learner.held, usual_ms, tuple(curve))
