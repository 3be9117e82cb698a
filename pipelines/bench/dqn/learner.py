"""The DQN learner beside a peer in the same vector environment: what both earn after equal steps, in how long."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.dqn.agent.actions import STAY
from models.dqn.environment.randomisation import draw_runs
from models.dqn.environment.vector import GroupedEnvironment
from models.dqn.evaluation import Choose, run_to_end
from models.dqn.learner.learner import Learner
from models.dqn.learner.settings import DEFAULT, LearnerSettings, TrainingLength
from pipelines.bench.peer import run_peer

STEPS, SEEDS = 20_000, (1, 2, 3)
LEAD_S, PRICE = 60.0, 10.0
"""Seconds until an executor works, and what a second over the latency target costs; all else of a job is drawn."""
BENCH_SETTINGS = replace(DEFAULT, batch=256, learning_rate=1e-3, copy_every=250, copy_share=1.0, warm=1000)
"""Quicker than what a million steps are learned with; the peer gets the same."""
GROUPS, RUNS, DECISIONS, TRIAL_SEED = 4, 16, 128, 1_000_003
TRIAL = 16, 16, 128
"""Groups, runs of each, decisions."""
_PEER = Path(__file__).with_name("peer.py")


def compare_learners(steps: int, seeds: Sequence[int], peer: Path | None) -> dict[str, Any]:
    """Train our DQN learner and Stable-Baselines3's in the same environment; compare mean rewards and training times.

    Both have the same 16 runs side by side, action mask, share of advised actions among random ones, steps, updates,
    sizes and rates. Limits torch to one thread, also afterwards.

    Args:
        steps: of training, over all runs.
        seeds: one training of each learner per seed; at least one.
        peer: a Python interpreter with stable-baselines3, numba and scipy; None leaves it out.

    Returns:
        `steps`, `seeds`; dicts `tidecast`, `plain` (ours without double learning) and, with a peer, `peer`: medians
        over seeds `score` (mean reward per decision on runs that no learner trained on), `seconds` (wall, of the
        training alone), `cpu_s` and `updates` (of the weights), and `scores`, one per seed; `peer` also `version`;
        numbers `stay` and `advised`, the scores of never changing the executors and of doing what the baseline policy
        does.

    Raises:
        PeerError, OSError: the peer's interpreter fails, or cannot be run.
        ValueError, IndexError, KeyError: the last line that it prints is no JSON, there is none, or it lacks a figure.
    """
    import torch

    torch.set_num_threads(1)
    settings = replace(BENCH_SETTINGS, buffer=max(steps, BENCH_SETTINGS.warm))
    runs: dict[str, list[dict[str, Any]]] = {"tidecast": [], "plain": [], "peer": []}
    for seed in seeds:
        runs["tidecast"].append(_train_ours(settings, steps, seed))
        runs["plain"].append(_train_ours(replace(settings, double=False), steps, seed))
        if peer is not None:
            runs["peer"].append(_train_peer(peer, steps, seed, settings))
    return {
        "steps": steps, "seeds": list(seeds), **{name: _median_of(each) for name, each in runs.items() if each},
        "stay": mean_reward(lambda environment: np.full(len(environment.seen), STAY)),
        "advised": mean_reward(lambda environment: environment.advice),
    }  # fmt: skip


def make_environment(seed: int) -> GroupedEnvironment:
    """Make the training environment of both learners: RUNS (16) jobs side by side, drawn from the seed."""
    runs = RUNS // GROUPS
    return GroupedEnvironment(
        TrainingLength(groups=GROUPS, runs=runs, decisions=DECISIONS, price=PRICE, lead_s=LEAD_S), (), (), seed
    )


def mean_reward(act: Choose) -> float:
    """Compute a policy's mean reward per decision over 16 groups of 16 trial runs, the same in every call.

    Args:
        act: from a trial environment to the (runs,) indices into MOVES (changes of executors) of its runs' actions.
    """
    chance, (groups, runs, decisions) = np.random.default_rng(TRIAL_SEED), TRIAL
    environments = (draw_runs(runs, decisions, (), chance, (), PRICE, LEAD_S) for _ in range(groups))
    rollouts = [run_to_end(environment, act) for environment in environments]
    return float(np.mean([(reward * weight).sum(axis=1) for reward, weight in rollouts]))


def time_call(learn: Callable[[], Any]) -> dict[str, float]:
    """Call `learn` and return its `seconds` on the wall and `cpu_s` of this process."""
    began, cpu = time.perf_counter(), time.process_time()
    learn()
    return {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


def _train_ours(settings: LearnerSettings, steps: int, seed: int) -> dict[str, Any]:
    environment = make_environment(seed)
    learner = Learner(environment, settings, seed)
    environment.step(np.full(RUNS, STAY))  # compiles the twin
    timing = time_call(lambda: list(learner.learn(steps, every=steps * settings.updates)))
    score = mean_reward(lambda trial: learner.greedy(trial.seen, trial.mask, trial.weight))
    return {**timing, "score": score, "updates": learner.updates}


def _train_peer(peer: Path, steps: int, seed: int, settings: LearnerSettings) -> dict[str, Any]:
    request = {"steps": steps, "seed": seed, "settings": asdict(settings)}
    return run_peer(peer, _PEER, request, "stable-baselines3, numba and scipy")


def _median_of(each: list[dict[str, Any]]) -> dict[str, Any]:
    middle = {name: statistics.median(one[name] for one in each) for name in ("score", "seconds", "cpu_s", "updates")}
    return {**each[0], **middle, "scores": [one["score"] for one in each]}
