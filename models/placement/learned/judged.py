"""How good a trained network is: what it proposes beside all placements that there are, and beside simple searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.placement.instances.job import Counts
from models.placement.learned.queries import QueryEvaluator, QuerySpace, weights_of
from models.placement.learned.reward import PlacementOutcome
from models.placement.learned.rivals import CountingEvaluator, Score, greedy_search, random_search
from models.placement.learned.training import PlacementModel

STARTS, MOST = 20, 5_000
"""Placements from which is proposed, and how many there may be for all of them to be looked at."""
EQUAL = 0.02
"""Difference of two scores, or of two networks' shares, that is none: as much as the drawn durations of batches do."""


class SearchShares(NamedTuple):
    """(score - start) ÷ (best - start), mean over the starts that are not the best already.

    Attributes:
        network: of the best placement that it proposes.
        greedy, random: of single moves and of drawn placements, at as many evaluations.
        starts: that were counted.
    """

    network: float
    greedy: float
    random: float
    starts: int


def judge_networks(
    models: Sequence[PlacementModel], spaces: Sequence[QuerySpace], seed: int
) -> list[SearchShares]:  # fmt: skip
    """Hold networks against all placements, or against the best of all searches where there are too many.

    Args:
        models: that were trained; all begin from the same starts, and are held against the same best.
        spaces: placements of the job, at a load each; starts are of each in turn.
        seed: of the starts, which are others than those of the training.

    Raises:
        NoRoomError: the clusters have no room for the queries.
    """
    random, weights = np.random.default_rng((seed, 7)), weights_of(spaces[0])
    every = spaces[0].every(MOST)  # what has room does not depend on the load
    evaluators = [QueryEvaluator(space) for space in spaces]
    outcomes = [[evaluator.outcome(one) for one in every] for evaluator in evaluators]
    shares: list[list[tuple[float, float, float]]] = [[] for _ in models]
    for at in range(STARTS):
        evaluator, known = evaluators[at % len(spaces)], outcomes[at % len(spaces)]
        start = evaluator.space.draw(random)
        began = evaluator.outcome(start)
        least = weights.reward(began, began)

        def score(counts: Counts, evaluator: QueryEvaluator = evaluator, began: PlacementOutcome = began) -> float:
            return weights.reward(began, evaluator.outcome(counts))

        found = [_search(model, evaluator, start, began, least, score, seed + at) for model in models]
        best = max(*(one for each in found for one in each), *(weights.reward(began, one) for one in known))
        if best > least + EQUAL:
            for each, own in zip(shares, found, strict=True):
                each.append(tuple((one - least) / (best - least) for one in own))  # type: ignore[arg-type]
    return [_mean(each) for each in shares]


def _mean(shares: list[tuple[float, float, float]]) -> SearchShares:
    network, greedy, random = np.mean(shares, axis=0).tolist() if shares else (0.0, 0.0, 0.0)
    return SearchShares(network, greedy, random, len(shares))


def _search(
    model: PlacementModel, evaluator: QueryEvaluator, start: Counts, began: PlacementOutcome, least: float,
    score: Score, seed: int,
) -> tuple[float, float, float]:  # fmt: skip
    """The scores of the best that a network proposes, and of both searches at as many evaluations."""
    space, counted = evaluator.space, CountingEvaluator(evaluator)
    proposed = model.proposer(space, counted, weights_of(space)).propose(start, began, seed)
    return (
        proposed[0].score if proposed else least,
        greedy_search(space, start, score, counted.asked),
        max(random_search(space, score, counted.asked, seed), least),
    )


def decide(challenger: SearchShares, champion: SearchShares | None) -> tuple[bool, str]:
    """Return whether a new network takes the champion's place, and why.

    Args:
        challenger: of the new network.
        champion: of the network that serves, on the same starts; None: there is none for this job.
    """
    if not challenger.starts:
        return False, "rejected: at these loads no placement is better than another"
    told = f"it comes to {challenger.network:.3f} of the best, drawn placements to {challenger.random:.3f}"
    if challenger.network < challenger.random - EQUAL:
        return False, f"rejected: {told} at as many evaluations"
    if champion is not None and challenger.network < champion.network - EQUAL:
        return False, f"rejected: {told}, the champion to {champion.network:.3f}"
    return True, f"promoted: {told}" + ("" if champion is None else f", the champion to {champion.network:.3f}")
