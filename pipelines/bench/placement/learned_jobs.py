"""DQN and LSTM on random jobs of 6 to 12 operators: is what they put in force better than the placement at first?

The network learns of the performance model alone, which learned of placements that the twin followed; the twin judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from models.placement.instances.initial import place_initially
from models.placement.instances.job import Counts
from models.placement.learned.evaluator import LearnedEvaluator, TwinEvaluator
from models.placement.learned.online import (
    BARRED_S,
    COOL_S,
    LEAST_JUDGED,
    LOW,
    Scheduled,
    StepOutcome,
    choose_proposal,
    judge_change,
)  # fmt: skip
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.rivals import CountingEvaluator, random_search
from models.placement.learned.schemes import Proposal
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import train_placement
from models.placement.performance.model import train_performance
from models.placement.performance.windows import STEPS as WINDOW
from models.placement.performance.windows import parts_in_time
from pipelines.bench.placement.performance import STEPS, record_past
from pipelines.bench.placement.random_jobs import JUDGED, random_job

NOISE = 1e-9
"""By less than this two scores are the same."""


def measure_learned_jobs(
    earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None] = lambda found: None
) -> dict[str, Any]:
    """Train and propose for every judged job that no earlier call has measured; about a minute each.

    Args:
        earlier: figures of an earlier call.
        save: called with the figures after each job.

    Returns:
        As `summarise`, and the jobs as `kept`, by their seeds.

    Raises:
        OSError: the figures cannot be written.
    """
    kept = {seed: job for seed, job in earlier.get("kept", {}).items() if int(seed) in JUDGED}
    for seed in JUDGED:
        if str(seed) not in kept:
            kept[str(seed)] = measure_job(seed)
            print(f"job {seed}: {kept[str(seed)]}", flush=True)
            save({**summarise(list(kept.values())), "kept": kept})
    return {**summarise(list(kept.values())), "kept": kept}


def measure_job(seed: int) -> dict[str, Any]:
    """Learn to place a random job, from the placement of the Pareto bins on, and try what comes of it for half an hour.

    Returns:
        Scores by the twin: of the placement at `start`; of what was put in force, one after the other, while what was
        measured made the rules take it back (`tried`); of what is in force in the end (`kept`); and of the best of as
        many drawn placements as were looked at (`looked_at`) to propose and to try these (`random`).
    """
    job, nodes = random_job(seed)
    twin, weights, space = TwinEvaluator(job, nodes), RewardWeights(), InstanceSpace(job, nodes)
    start = place_initially(job, nodes)
    began = twin.outcome(start)
    train, stop, _ = parts_in_time(record_past(job, nodes, STEPS, seed, start))
    window = np.tile([float(job.arrivals_rps.sum()), *start.reshape(-1)], (WINDOW, 1))
    learned = LearnedEvaluator(train_performance(train, stop, int(nodes.slots.max()), seed), window)
    model = train_placement(space, [learned], weights, seed, start)
    evaluator = CountingEvaluator(learned)
    (said,) = evaluator.outcomes([start], [(start, began)])  # by the model itself, so that what it errs by is in both
    # Walks alone: looking around the best of them finds what the performance model errs by.
    proposals = model.proposer(space, evaluator, weights).walk(start, said, seed)
    tried, kept = _try_online(twin, start, said, proposals, weights)
    looked_at = evaluator.asked + len(tried)

    def score(counts: Counts) -> float:
        return weights.reward(began, twin.outcome(counts))

    return {
        "start": weights.reward(began, began), "tried": [score(one) for one in tried], "kept": score(kept),
        "random": random_search(space, score, looked_at, seed), "looked_at": looked_at,
    }  # fmt: skip


def _try_online(
    twin: TwinEvaluator, start: Counts, said: PlacementOutcome, proposals: list[Proposal], weights: RewardWeights
) -> tuple[list[Counts], Counts]:
    """What the rules of a running job put in force in half an hour, and what of it stays."""
    began = twin.outcome(start)
    tried, state, now_s = list[Counts](), Scheduled(), 0.0
    while now_s < BARRED_S:
        for _ in range(LEAST_JUDGED):
            state = state.after_step(_step(began), _step(said))
        chosen = choose_proposal(
            state, now_s, start, weights.reward(said, said), proposals, fewer=began.mean_load < LOW
        )
        if chosen is None:
            break
        tried.append(chosen.counts)
        state = state.after_change(now_s, start)
        for _ in range(LEAST_JUDGED):
            state = state.after_step(_step(twin.outcome(chosen.counts)), _step(chosen.outcome))
        state, back = judge_change(state, now_s + COOL_S, chosen.counts, weights)
        if back is None:
            return tried, chosen.counts
        now_s += 2 * COOL_S
    return tried, start


def summarise(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """Count jobs.

    Returns:
        Of those in which a random search finds something better than the start (`possible`) the share in which what
        is in force in the end is better (`better`), and in which it is better than what that search finds
        (`above_random`), and the share in which what was put in force first is better than the start (`better_first`).
        Of all `n` those in which what is in force in the end is worse than the start (`worse`), and in which what was
        put in force first is (`worse_first`).
    """
    possible = [one for one in jobs if one["random"] > one["start"] + NOISE]

    def share(better: Callable[[dict[str, Any]], bool]) -> float | None:
        return float(np.mean([better(one) for one in possible])) if possible else None

    return {
        "better": share(lambda one: one["kept"] > one["start"] + NOISE),
        "better_first": share(lambda one: bool(one["tried"]) and one["tried"][0] > one["start"] + NOISE),
        "above_random": share(lambda one: one["kept"] > one["random"] + NOISE),
        "worse": sum(one["kept"] < one["start"] - NOISE for one in jobs),
        "worse_first": sum(bool(one["tried"]) and one["tried"][0] < one["start"] - NOISE for one in jobs),
        "possible": len(possible),
        "n": len(jobs),
    }


def _step(outcome: PlacementOutcome) -> StepOutcome:
    return StepOutcome(outcome.latency_ms, outcome.mean_load)
