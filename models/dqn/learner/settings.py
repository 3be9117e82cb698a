"""Hyper-parameters of the learner, and how long and on how much it trains."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class LearnerSettings:
    """Hyper-parameters of the learner.

    Attributes:
        hidden: units of each of two hidden layers.
        double: as of `learner.value_target`.
        dueling: whether the network says the value of the state apart from that of the actions.
        acts_held: whether the target network, which is steadier, acts; else the one that learns.
        gamma: discount per decision.
        steps: rewards that are summed before a value is estimated.
        buffer: transitions kept; batch: drawn per update.
        learning_rate: of Adam at the beginning.
        last_rate: share of it at the end, to which it falls linearly.
        copy_every: updates between two moves of the target network.
        copy_share: of the way to the learning network that it moves; 1 copies, less averages (Lillicrap et al. 2016).
        updates: per decision of all runs together.
        warm: transitions before the first update.
        explore: least share of random actions, reached after `explore_for` of the training.
        explore_decay: by what that share is multiplied after how many transitions each; None: it falls linearly.
        advised: share of the random actions that are the advised ones.
        clip: largest norm of the gradient.
        huber: error beyond which the loss grows no faster; the paper's is the square.
        price_power: errors of the violation part weigh the price to this power (where there are two parts).
    """

    hidden: int = 128
    double: bool = True
    dueling: bool = True
    acts_held: bool = True
    gamma: float = 0.96
    steps: int = 3
    buffer: int = 300_000
    batch: int = 512
    learning_rate: float = 5e-4
    last_rate: float = 0.1
    copy_every: int = 1
    copy_share: float = 0.005
    updates: int = 8
    warm: int = 5000
    explore: float = 0.05
    explore_for: float = 0.2
    explore_decay: tuple[float, int] | None = None
    advised: float = 0.5
    clip: float = 20.0
    huber: float = 1.0
    price_power: float = 0.25

    def explore_share(self, made: int, of: int) -> float:
        """Return the share of random actions once `made` of `of` transitions were made."""
        if self.explore_decay is None:
            return max(self.explore, 1 - made / of / self.explore_for * (1 - self.explore))
        factor, each = self.explore_decay
        return max(self.explore, factor ** (made // each))


DEFAULT = LearnerSettings()


@dataclass(frozen=True)
class TrainingLength:
    """How long an agent is trained, and on how many runs at once.

    Attributes:
        learner: hyper-parameters.
        groups: groups of runs that share a lead time.
        runs: in a group.
        decisions: of a run.
        transitions: in all, one per run and decision.
        evaluate_every: updates between two evaluations.
        price: of a second over the target, in seconds of all executors, for all runs; None to draw it.
        lead_s: seconds of start-up, for all runs; None to draw it.
        batch_s: seconds that batches should take, for all runs; None to draw them.
        trial: runs and decisions of each group on which the agent is evaluated.
        prices: number of prices at which the trained agent is tried.
    """

    learner: LearnerSettings = DEFAULT
    groups: int = 6
    runs: int = 64
    decisions: int = 128
    transitions: int = 1_000_000
    evaluate_every: int = 3000
    price: float | None = None
    lead_s: float | None = None
    batch_s: float | None = None
    trial: tuple[int, int] = (48, 96)
    prices: int = 8


FINE = TrainingLength(
    replace(DEFAULT, learning_rate=2e-4, explore_for=1e-9), groups=2, transitions=150_000, evaluate_every=500
)
"""For fitting an agent to one job: the lead time is the job's, so two groups do."""
