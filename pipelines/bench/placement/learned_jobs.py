"""DQN and LSTM on random jobs of 6 to 12 operators: is what they put in force better than the placement at first?

The network learns of the performance model alone, which learned of placements that the twin followed; the twin judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from models.placement.instances.initial import place_initially
from models.placement.learned.evaluator import LearnedEvaluator, TwinEvaluator
from models.placement.learned.online import (
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
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import train_placement
from models.placement.performance.model import train_performance
from models.placement.performance.windows import STEPS as WINDOW
from models.placement.performance.windows import parts_in_time
from pipelines.bench.placement.learned import STEPS, record_past
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
    """Learn to place a random job, from the placement of the Pareto bins on, and try what comes of it.

    Returns:
        Scores by the twin: of the placement at `start`, of what was put in force (`tried`, None where nothing was),
        of what is in force once that was judged by what is measured (`kept`), and of the best of as many drawn
        placements as were looked at to propose it (`random`, which the twin tells apart exactly); `looked_at`.
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
    proposals = model.proposer(space, evaluator, weights).propose(start, said, seed)
    least = weights.reward(began, began)
    state = Scheduled(measured=(_step(began),) * LEAST_JUDGED)
    chosen = choose_proposal(state, 0.0, start, weights.reward(said, said), proposals, fewer=began.mean_load < LOW)
    told: dict[str, Any] = {"start": least, "tried": None, "kept": least, "looked_at": evaluator.asked}
    if chosen is not None:
        came = twin.outcome(chosen.counts)
        changed = state.after_change(0.0, start)
        for _ in range(LEAST_JUDGED):
            changed = changed.after_step(_step(came), _step(chosen.outcome))
        _, back = judge_change(changed, COOL_S, chosen.counts)
        told["tried"] = weights.reward(began, came)
        told["kept"] = told["tried"] if back is None else least

    told["random"] = random_search(
        space, lambda counts: weights.reward(began, twin.outcome(counts)), evaluator.asked, seed
    )
    return told


def summarise(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """Count jobs.

    Returns:
        `changed`, in which another placement was put in force; `worse_at_first`, in which it was worse than the start;
        `worse`, in which it was and stayed; of those in which a random search finds something better than the start
        (`possible`) the share in which what is in force in the end is better (`better`); `above_random`, share of
        these in which it is better than what the random search finds; `n`.
    """
    possible = [one for one in jobs if one["random"] > one["start"] + NOISE]
    return {
        "changed": sum(one["tried"] is not None for one in jobs),
        "worse_at_first": sum(one["tried"] is not None and one["tried"] < one["start"] - NOISE for one in jobs),
        "worse": sum(one["kept"] < one["start"] - NOISE for one in jobs),
        "possible": len(possible),
        "better": float(np.mean([one["kept"] > one["start"] + NOISE for one in possible])) if possible else None,
        "above_random": float(np.mean([one["kept"] > one["random"] + NOISE for one in possible])) if possible else None,
        "n": len(jobs),
    }


def _step(outcome: PlacementOutcome) -> StepOutcome:
    return StepOutcome(outcome.latency_ms, outcome.mean_load)
