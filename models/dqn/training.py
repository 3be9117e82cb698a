"""From an untrained network to an agent: learning over drawn jobs and loads, and trying what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from models.dqn.agent import LAYERS, Agent, Familiar
from models.dqn.draw import HEARD_LEADS_S, PRICES, Drawn, drawn
from models.dqn.fleet import Fleet
from models.dqn.learner import DEFAULT, Learner, Outcome, Settings
from models.dqn.shapes import Trace
from models.policy.capacity import Floats, Integers
from models.twin.job import MOST, Job

SPARSE = 16
"""Every so many observations one is kept to know what the agent was trained on."""
HEEDS = (0.1, 0.3, 1.0, 1e9)
"""Of `Agent.heeds`; with the last one the agent does what it is advised."""
SURE = 2.0
"""Standard errors by which departures must have earned more than the advice at a price, on runs of their own."""


@dataclass(frozen=True)
class Training:
    """How long, and on how much at once.

    Attributes:
        learner: hyper-parameters.
        fleets: groups of runs that share a lead time.
        runs: in a group.
        decisions: of a run.
        transitions: in all.
        evaluate_every: updates.
        price, lead_s: the same for all runs; None to draw them.
        trial: runs and decisions of each of the groups on which it is tried.
        prices: at which it is tried in the end.
    """

    learner: Settings = DEFAULT
    fleets: int = 6
    runs: int = 64
    decisions: int = 128
    transitions: int = 1_000_000
    evaluate_every: int = 3000
    price: float | None = None
    lead_s: float | None = None
    trial: tuple[int, int] = (48, 96)
    prices: int = 8


FINE = Training(
    replace(DEFAULT, learning_rate=2e-4, explore_for=1e-9), fleets=2, transitions=150_000, evaluate_every=500
)
"""For fitting an agent to one job: the lead time is the job's, so two groups do."""


class Fleets:
    """Groups of runs as one ground; a group that is over gives way to a new one."""

    def __init__(self, training: Training, traces: Sequence[Trace], jobs: Sequence[Job], seed: int) -> None:
        """The groups are at different places of their runs from the start."""
        self._training, self._traces, self._jobs = training, traces, jobs
        self._chance = np.random.default_rng(seed)
        self._fleets = [self._new() for _ in range(training.fleets)]
        self._number = 0
        self.sample: list[np.ndarray] = []
        self._show()

    def _new(self) -> Fleet:
        how = self._training
        made = drawn(
            how.runs, how.decisions, self._traces, self._chance, self._jobs, price=how.price, lead_s=how.lead_s
        )
        return Fleet(made, self._chance.integers(2**62, size=how.runs))

    def _show(self) -> None:
        self.seen = np.concatenate([fleet.seen for fleet in self._fleets])
        self.mask = np.concatenate([fleet.mask for fleet in self._fleets])
        self.advice: Integers | None = np.concatenate([fleet.advice for fleet in self._fleets])
        self.weight: Floats = np.concatenate([fleet.weight for fleet in self._fleets])

    def step(self, moves: Integers) -> Outcome:
        """Act in every run of every group."""
        runs = self._training.runs
        gained = [fleet.step(moves[i * runs : (i + 1) * runs]) for i, fleet in enumerate(self._fleets)]
        after, mask = np.concatenate([f.seen for f in self._fleets]), np.concatenate([f.mask for f in self._fleets])
        # Groups start over one after the other, so that the buffer never holds one hour of the day alone.
        self._number += 1
        self.sample.append(after[self._number % SPARSE :: SPARSE])
        spread = self._training.decisions // len(self._fleets)
        young = [i * spread for i in range(len(self._fleets))]
        cut = [f.over or (self._number == young[i] and i > 0) for i, f in enumerate(self._fleets)]
        self._fleets = [self._new() if gone else fleet for fleet, gone in zip(self._fleets, cut, strict=True)]
        self._show()
        return Outcome(np.concatenate(gained), after, mask, np.zeros(len(moves), bool), np.repeat(cut, runs))


def train(
    jobs: Sequence[Job], loads: Sequence[Trace], training: Training, seed: int, start: Agent | None = None
) -> Agent:
    """An agent trained on jobs (none: all kinds, drawn anew for each group) and loads (none: made ones only).

    The same arguments give the same agent. The network with the best score on runs of its own is kept.

    Args:
        jobs: with one lead time; a fitted twin's, for fine-tuning.
        loads: real traces, of which pieces are played; made loads are mixed in.
        training: how.
        seed: of everything.
        start: an agent to go on from.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ground = Fleets(training, loads, jobs, seed)
        learner = Learner(ground, training.learner, seed)
        if start is not None:
            _load(learner, start)
        trial = _trials(training, jobs, loads, seed + 1)
        best, curve = _weights(learner), []
        highest = score(_agent(best, training), trial)
        curve.append({"updates": 0.0, "transitions": 0.0, "loss": float("nan"), "score": highest})
        for step in learner.learn(ground, training.transitions, training.evaluate_every):
            reached = score(_agent(_weights(learner), training), trial)
            curve.append(
                {"updates": step.updates, "transitions": step.transitions, "loss": step.loss, "score": reached}
            )
            if reached > highest:
                highest, best = reached, _weights(learner)
        familiar = Familiar.of(np.concatenate(ground.sample).astype(float))
    finally:
        torch.set_num_threads(before)
    made = replace(_agent(best, training), familiar=familiar, curve=tuple(curve))
    prices = np.geomspace(*PRICES, training.prices)
    heeds = np.full(len(prices), HEEDS[-1])
    for i, price in enumerate(prices.tolist()):  # the dearer lateness is, the less a departure can win
        heeds[i] = _heed(made, price, _trials(replace(training, price=price), jobs, loads, seed + 3))
        if heeds[i] == HEEDS[-1]:
            break
    made = replace(made, prices=prices, heeds=heeds)
    tried = np.array([tried_at(made, training, jobs, loads, price, seed + 2) for price in prices.tolist()])
    return replace(made, tried=tried)


def tried_at(
    agent: Agent, training: Training, jobs: Sequence[Job], loads: Sequence[Trace], price: float, seed: int
) -> tuple[float, float]:
    """Executors paid over executors needed, and share of seconds over the target, on runs drawn by a seed."""
    paid = need = over = 0.0
    trials = _trials(replace(training, price=price), jobs, loads, seed)
    for made in trials:
        gained = _rolled(Fleet(made, np.arange(training.trial[0])), agent)
        most = made.jobs.fact(MOST)
        need += made.needed.mean()
        paid += (made.needed.mean(axis=1) - gained[:, 0] * most).mean()
        over -= gained[:, 1].mean()
    return paid / need, over / len(trials)


def _trials(training: Training, jobs: Sequence[Job], loads: Sequence[Trace], seed: int) -> list[Drawn]:
    """Groups of runs over the lead times, the same for the same seed."""
    chance = np.random.default_rng(seed)
    leads = (training.lead_s,) if jobs or training.lead_s else HEARD_LEADS_S
    return [drawn(*training.trial, loads, chance, jobs, training.price, lead) for lead in leads]


def score(agent: Agent, trial: Sequence[Drawn]) -> float:
    """Mean of `scores`."""
    return float(np.mean(scores(agent, trial)))


def scores(agent: Agent, trial: Sequence[Drawn]) -> Floats:
    """(all runs,) mean reward of an agent, divided by `1 + price / 30` so that no price outshouts the rest."""
    said = []
    for made in trial:
        fleet = Fleet(made, np.arange(len(made.needed)))
        gained = _rolled(fleet, agent)
        said.append((gained * fleet.weight).sum(axis=1) / (1 + fleet.weight[:, 1] / 30))
    return np.concatenate(said)


def _heed(made: Agent, price: float, trial: Sequence[Drawn]) -> float:
    """How much the agent heeds at a price: what earns most, if it surely earns more than doing what is advised."""

    def earned(heed: float) -> Floats:
        return scores(replace(made, prices=np.array([price]), heeds=np.array([heed])), trial)

    advised, best, most = earned(HEEDS[-1]), HEEDS[-1], 0.0
    for heed in HEEDS[:-1]:
        more = earned(heed) - advised
        if more.mean() > max(most, SURE * float(more.std()) / np.sqrt(len(more))):
            best, most = heed, float(more.mean())
    return best


def _rolled(fleet: Fleet, agent: Agent) -> Floats:
    """(runs, 2) mean of the reward's parts over runs."""
    total: Floats = np.zeros((len(fleet.seen), 2))
    while not fleet.over:
        total += fleet.step(agent.moves(fleet.seen, fleet.weight[:, 1], fleet.mask, fleet.advice))
    return total / fleet.drawn.decisions


def _agent(weights: dict[str, tuple[np.ndarray, np.ndarray]], training: Training) -> Agent:
    """One that was not tried and for which nothing is familiar yet."""
    nothing = Familiar(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 0)), 0.0)
    return Agent(weights, training.learner.dueling, nothing, np.zeros(0), np.zeros(0), np.zeros((0, 2)))


def _weights(learner: Learner) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    layers = {name: getattr(learner.held, name) for name in LAYERS}
    return {n: (x.weight.detach().numpy().copy(), x.bias.detach().numpy().copy()) for n, x in layers.items()}


def _load(learner: Learner, agent: Agent) -> None:
    with torch.no_grad():
        for name in LAYERS:
            layer = getattr(learner.online, name)
            layer.weight.copy_(torch.from_numpy(agent.weights[name][0]))
            layer.bias.copy_(torch.from_numpy(agent.weights[name][1]))
    learner.held.load_state_dict(learner.online.state_dict())
