"""An agent on runs drawn for trying it: what it scores, what it pays, at which prices its departures earn more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.dqn.agent.model import DqnModel
from models.dqn.environment.randomisation import HEARD_LEADS_S, Drawn, drawn
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.dqn.learner.settings import TrainingLength
from models.policy.core.capacity import Floats
from models.twin.sim.job import TwinJob

MARGINS = (0.1, 0.3, 1.0, 1e9)
"""Of `DqnModel.margins`; with the last one the agent does what it is advised."""
SURE = 2.0
"""Standard errors by which departures must have earned more than the advice at a price, on runs of their own."""


def trials(training: TrainingLength, jobs: Sequence[TwinJob], loads: Sequence[RecordedLoad], seed: int) -> list[Drawn]:
    """Groups of runs over the lead times, the same for the same seed."""
    chance = np.random.default_rng(seed)
    leads = (training.lead_s,) if jobs or training.lead_s else HEARD_LEADS_S
    return [drawn(*training.trial, loads, chance, jobs, training.price, lead) for lead in leads]


def score(agent: DqnModel, trial: Sequence[Drawn]) -> float:
    """Mean of `scores`."""
    return float(np.mean(scores(agent, trial)))


def scores(agent: DqnModel, trial: Sequence[Drawn]) -> Floats:
    """(all runs,) mean reward of an agent, divided by `1 + price / 30` so that no price outshouts the rest."""
    said = []
    for made in trial:
        vector = VectorEnvironment(made, np.arange(len(made.needed)))
        gained = _rolled(vector, agent)
        said.append((gained * vector.weight).sum(axis=1) / (1 + vector.weight[:, 1] / 30))
    return np.concatenate(said)


def tried_at(
    agent: DqnModel,
    training: TrainingLength,
    jobs: Sequence[TwinJob],
    loads: Sequence[RecordedLoad],
    price: float,
    seed: int,
) -> tuple[float, float]:
    """Executors paid over executors needed, and share of seconds over the target, on runs drawn by a seed."""
    paid = need = over = 0.0
    groups = trials(replace(training, price=price), jobs, loads, seed)
    for made in groups:
        gained = _rolled(VectorEnvironment(made, np.arange(training.trial[0])), agent)
        most = made.jobs.facts["most"]
        need += made.needed.mean()
        paid += (made.needed.mean(axis=1) - gained[:, 0] * most).mean()
        over -= gained[:, 1].mean()
    return paid / need, over / len(groups)


def margin_for(made: DqnModel, price: float, trial: Sequence[Drawn]) -> float:
    """How much the agent margins at a price: what earns most, if it surely earns more than doing what is advised."""

    def earned(margin: float) -> Floats:
        return scores(replace(made, prices=np.array([price]), margins=np.array([margin])), trial)

    advised, best, most = earned(MARGINS[-1]), MARGINS[-1], 0.0
    for margin in MARGINS[:-1]:
        more = earned(margin) - advised
        if more.mean() > max(most, SURE * float(more.std()) / np.sqrt(len(more))):
            best, most = margin, float(more.mean())
    return best


def _rolled(vector: VectorEnvironment, agent: DqnModel) -> Floats:
    """(runs, 2) mean of the reward's parts over runs."""
    total: Floats = np.zeros((len(vector.seen), 2))
    while not vector.over:
        total += vector.step(agent.moves(vector.seen, vector.weight[:, 1], vector.mask, vector.advice))
    return total / vector.drawn.decisions
