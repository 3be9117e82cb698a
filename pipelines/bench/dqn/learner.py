"""The DQN learner beside a peer on the same environment: what it earns after equal steps, and how long it took."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from models.dqn.agent.actions import STAY, best
from models.dqn.environment.group import Fleet
from models.dqn.environment.randomisation import drawn
from models.dqn.environment.vector import Fleets
from models.dqn.learner.learner import Learner
from models.dqn.learner.settings import DEFAULT, Settings, Training

LEAD_S, PRICE = 60.0, 10.0
"""Of the jobs of the bench; all else is drawn."""
SHORT = replace(DEFAULT, batch=256, learning_rate=1e-3, copy_every=250, copy_share=1.0, warm=1000)
"""Quicker than what a million steps are learned with; the peer gets the same."""
FLEETS, RUNS, DECISIONS, TRIAL_SEED = 4, 16, 128, 1_000_003
TRIAL = 16, 16, 128
"""Groups, runs of each, decisions."""
_PEER = Path(__file__).with_name("peer.py")


class PeerError(RuntimeError):
    """The peer's interpreter could not run it; the message holds what it said."""


def measure(steps: int, seed: int, peer: Path | None) -> dict[str, Any]:
    """Mean reward per decision on runs that nobody trained on, and seconds on one thread.

    Both make as many steps and as many updates, with the same sizes and rates; the peer steps one run at a time, as
    its users do. `plain` is the same learner without double learning, `stay` is what comes of never moving, so that
    only the floor acts.
    """
    import torch
    import torch._dynamo  # what an optimizer of torch imports at its first step: imports are not counted

    torch.set_num_threads(1)
    settings = replace(SHORT, buffer=max(steps, SHORT.warm))
    learner, ours = _learned(settings, steps, seed)
    found: dict[str, Any] = {
        "steps": steps, "seed": seed, "updates": learner.updates, **ours,
        "plain": _learned(replace(settings, double=False), steps, seed)[1],
        "stay": _earned(lambda fleet: best(np.eye(6)[np.full(len(fleet.seen), STAY)], fleet.mask)),
    }  # fmt: skip
    if peer is not None:
        found["peer"] = _peer(peer, steps, seed, learner)
        found["times_faster"] = found["peer"]["seconds"] / ours["seconds"]
        found["times_less_cpu"] = found["peer"]["cpu_s"] / ours["cpu_s"]  # steadier where other work runs beside
    return found


def _learned(settings: Settings, steps: int, seed: int) -> tuple[Learner, dict[str, float]]:
    """A learner after so many steps, and what it took and earns."""
    training = Training(settings, fleets=FLEETS, runs=RUNS // FLEETS, decisions=DECISIONS, price=PRICE, lead_s=LEAD_S)
    ground = Fleets(training, (), (), seed)
    learner = Learner(ground, settings, seed)
    ground.step(np.full(RUNS, STAY))  # compiles the twin
    began, cpu = time.perf_counter(), time.process_time()
    for _ in learner.learn(ground, steps, every=steps * settings.updates):
        pass
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    score = _earned(lambda fleet: learner.greedy(fleet.seen, fleet.mask, fleet.weight))
    return learner, {"seconds": seconds, "cpu_s": cpu, "score": score}


def _earned(choose: Callable[[Fleet], np.ndarray]) -> float:
    """Mean reward per decision over the groups of the trial."""
    chance, total = np.random.default_rng(TRIAL_SEED), 0.0
    groups, runs, decisions = TRIAL
    for _ in range(groups):
        fleet = Fleet(drawn(runs, decisions, (), chance, (), PRICE, LEAD_S), np.arange(runs))
        while not fleet.over:
            total += float((fleet.step(choose(fleet)) * fleet.weight).sum(axis=1).mean())
    return total / (groups * decisions)


def _peer(peer: Path, steps: int, seed: int, learner: Learner) -> dict[str, Any]:
    ours = learner.settings
    settings = {
        "learning_rate": ours.learning_rate, "buffer_size": ours.buffer, "learning_starts": ours.warm,
        "batch_size": ours.batch, "gamma": ours.gamma, "max_grad_norm": ours.clip, "train_freq": RUNS // ours.updates,
        "gradient_steps": 1, "target_update_interval": ours.copy_every * RUNS // ours.updates,
        "tau": ours.copy_share,
        "exploration_fraction": ours.explore_for, "exploration_final_eps": ours.explore, "n_steps": ours.steps,
        "policy_kwargs": {"net_arch": [ours.hidden, ours.hidden]},
    }  # fmt: skip
    asked = {
        "steps": steps, "seed": seed, "decisions": DECISIONS, "price": PRICE, "lead_s": LEAD_S, "trial": TRIAL,
        "trial_seed": TRIAL_SEED, "settings": settings,
    }  # fmt: skip
    ran = subprocess.run([peer, _PEER], input=json.dumps(asked), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise PeerError(f"{peer}: {ran.stderr.strip()[-500:]} Install stable-baselines3, numba and scipy there.")
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found
