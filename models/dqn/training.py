"""Train an agent over drawn jobs and loads, and try it on loads that it did not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from models.dqn.agent.model import LAYERS, DqnModel, Familiar
from models.dqn.environment.randomisation import PRICES
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import GroupedEnvironment
from models.dqn.evaluation import MARGINS, choose_margin, draw_trials, measure_cost, score
from models.dqn.learner.learner import Learner
from models.dqn.learner.settings import TrainingLength
from models.dqn.learner.threads import one_thread
from models.twin.sim.job import TwinJob

HELD = 0.25
"""Newest share of each load that is held out for evaluation."""


def train(
    jobs: Sequence[TwinJob], loads: Sequence[RecordedLoad], training: TrainingLength, seed: int,
    start: DqnModel | None = None,
) -> DqnModel:  # fmt: skip
    """Train an agent on drawn jobs and loads, and return it; the same arguments give the same agent. Writes no file.

    Of the untrained network and those evaluated each `training.evaluate_every` updates the one with the best `score` on
    the newest quarter of every load, which is not learned from, is kept. There its margins (`DqnModel.margins`) are
    chosen and it is tried at every price too. Torch runs on one thread while the network is trained.

    Args:
        jobs: with the same lead time, as of a simulator fitted to one job, for fine-tuning; empty: all kinds, drawn
            anew for each group.
        loads: real traces, pieces of which are mixed with synthetic loads; empty: synthetic ones only.
        training: how long, on how many runs.
        seed: of everything.
        start: an agent to go on from, with as many hidden units; None: an untrained network.

    Returns:
        The agent with its learning curve, `training.prices` prices from 0.1 to 1000, and margins and results at these.

    Raises:
        RuntimeError: `start` has other layer sizes than `training.learner`.
        ValueError: `training` has too few transitions for a single decision, or no runs; or a load has no values.
    """
    with one_thread():
        parts = [load.parted(HELD) for load in loads]
        older, newer = [one for one, _ in parts], [one for _, one in parts]
        environment = GroupedEnvironment(training, older, jobs, seed)
        learner = Learner(environment, training.learner, seed)
        if start is not None:
            _load(learner, start)
        trial = draw_trials(training, jobs, newer, seed + 1)
        best = _weights(learner)
        highest = score(_agent(best), trial)
        curve = [{"updates": 0.0, "transitions": 0.0, "loss": float("nan"), "score": highest}]
        for step in learner.learn(training.transitions, training.evaluate_every):
            reached = score(_agent(_weights(learner)), trial)
            curve.append({**step._asdict(), "score": reached})
            if reached > highest:
                highest, best = reached, _weights(learner)
        familiar = Familiar.from_observations(np.concatenate(environment.sample).astype(float))
    made = replace(_agent(best), familiar=familiar, curve=tuple(curve))
    prices = np.geomspace(*PRICES, training.prices)
    margins = np.full(len(prices), MARGINS[-1])
    for i, price in enumerate(prices.tolist()):  # the dearer lateness is, the less a departure can win
        margins[i] = choose_margin(made, price, draw_trials(replace(training, price=price), jobs, newer, seed + 3))
        if margins[i] == MARGINS[-1]:
            break
    made = replace(made, prices=prices, margins=margins)
    again = (draw_trials(replace(training, price=price), jobs, newer, seed + 2) for price in prices.tolist())
    return replace(made, tried=np.array([measure_cost(made, trial) for trial in again]))


def _agent(weights: dict[str, tuple[np.ndarray, np.ndarray]]) -> DqnModel:
    """One that was not tried and for which nothing is familiar yet."""
    nothing = Familiar(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 0)), 0.0)
    return DqnModel(weights, nothing, np.zeros(0), np.zeros(0), np.zeros((0, 2)))


def _weights(learner: Learner) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    kept = {name: part.numpy().copy() for name, part in learner.held.state_dict().items()}
    return {name: (kept[f"{name}.weight"], kept[f"{name}.bias"]) for name in LAYERS}


def _load(learner: Learner, agent: DqnModel) -> None:
    parts = {name: dict(zip(("weight", "bias"), agent.weights[name], strict=True)) for name in LAYERS}
    known = {f"{name}.{of}": torch.from_numpy(array) for name, both in parts.items() for of, array in both.items()}
    for network in (learner.online, learner.held):
        network.load_state_dict(known)
