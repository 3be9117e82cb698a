"""Learned placement of small jobs beside all placements that there are, greedy moves and random search."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import Counts, ParallelJob, StreamEdge, has_room
from models.placement.learned.evaluator import LearnedEvaluator, TwinEvaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.rivals import CountingEvaluator, greedy_search, random_search
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import OURS, PAPER, PlacementModel, PlacementTraining, train_placement
from models.placement.performance.model import train_performance
from models.placement.performance.windows import STEPS as WINDOW
from models.placement.performance.windows import parts_in_time
from pipelines.bench.placement.performance import record_past

SHAPES = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2))
"""Operators and nodes of the small jobs, of which every placement is looked at."""
SEEDS, SLOTS = (100, 101, 102), 3
SHORT_PAST, DRAWN = 1_000, 10
"""Minutes of the past from which the performance of a small job is learned, and how often walks and random search are
drawn of it, by other seeds.
"""


def small_job(seed: int, operators: int, nodes: int) -> tuple[ParallelJob, Nodes]:
    """Draw a chain of operators and nodes in two domains 10 ms apart, with three slots each."""
    random = np.random.default_rng(seed)
    service_s = random.uniform(2, 8, operators) / 1000
    need = np.tile([1.0, 0.5], (operators, 1))
    arrivals = np.zeros(operators)
    arrivals[0] = random.uniform(80, 160)
    edges = tuple(StreamEdge(own, own + 1, float(random.uniform(0.5, 1.2))) for own in range(operators - 1))
    made = Nodes(
        np.column_stack([random.choice([2.0, 3.0, 4.0], nodes), np.full(nodes, 8.0)]), np.zeros((nodes, 2)),
        np.arange(nodes) % 2, np.array([[0, 10.0], [10.0, 0]]), slots=np.full(nodes, SLOTS),
    )  # fmt: skip
    return ParallelJob(arrivals, service_s, np.ones(operators, np.int64), need, edges), made


def every_placement(job: ParallelJob, nodes: Nodes) -> Iterator[Counts]:
    """Yield all placements that have room."""
    per_node = [x for x in itertools.product(range(SLOTS + 1), repeat=job.operators) if sum(x) <= SLOTS]
    for columns in itertools.product(per_node, repeat=nodes.count):
        counts = np.array(columns).T
        if has_room(job, nodes, counts):
            yield counts


class SmallSearch(NamedTuple):
    """A small job from whose first placement something better is to be found.

    Attributes:
        name: of it: its seed, operators and nodes.
        seed: of it.
        space: its placements.
        start: the first one, drawn.
        began: what that comes to.
        least, best: score of it, and of the best placement that there is.
    """

    name: str
    seed: int
    space: InstanceSpace
    start: Counts
    began: PlacementOutcome
    least: float
    best: float

    def evaluator(self) -> TwinEvaluator:
        """Return a twin that knows no placement yet."""
        return TwinEvaluator(self.space.job, self.space.nodes)

    def trained(self, how: PlacementTraining) -> tuple[PlacementModel, float]:
        """Return a network that learned from the twin, and the CPU seconds that it took, in one thread."""
        begun = time.process_time()
        model = train_placement(self.space, [self.evaluator()], RewardWeights(), self.seed, self.start, how)
        return model, time.process_time() - begun

    def proposed(self, model: PlacementModel, seed: int) -> tuple[float, int]:
        """Return the best score that a network proposes, and evaluations for that."""
        counted = CountingEvaluator(self.evaluator())
        found = model.proposer(self.space, counted, RewardWeights()).propose(self.start, self.began, seed)
        return (found[0].score if found else self.least), counted.asked

    def share(self, score: float) -> float:
        """Return (score - start) ÷ (best - start), of what is no better than the start 0."""
        return (max(score, self.least) - self.least) / (self.best - self.least)


def small_searches() -> Iterator[SmallSearch]:
    """Yield the small jobs whose first placement is not the best."""
    for shape, seed in itertools.product(SHAPES, SEEDS):
        job, nodes = small_job(seed, *shape)
        evaluator, start = TwinEvaluator(job, nodes), draw_counts(job, nodes, np.random.default_rng(seed), more=False)
        began, weights = evaluator.outcome(start), RewardWeights()
        least = weights.reward(began, began)
        best = max(weights.reward(began, evaluator.outcome(one)) for one in every_placement(job, nodes))
        if best > least + 1e-9:
            name, space = f"{seed}: {shape[0]} x {shape[1]}", InstanceSpace(job, nodes)
            yield SmallSearch(name, seed, space, start, began, least, best)


def measure_paper_settings() -> dict[str, Any]:
    """Train a network for each small job by the settings that the paper prints; some two minutes each.

    Returns:
        `share`: mean of (score - start) ÷ (best - start), with `low` and `high` of a bootstrap; CPU `seconds` of
        the longest training; `n`.
    """
    shares, seconds = [], 0.0
    for one in small_searches():
        model, took = one.trained(PAPER)
        shares.append(one.share(one.proposed(model, one.seed)[0]))
        seconds = max(seconds, took)
    return {"share": _interval(shares), "seconds": seconds, "n": len(shares)}


def measure_search(save: Callable[[dict[str, Any]], None] = lambda found: None) -> dict[str, Any]:
    """Train a network for each small job, and hold what it proposes against other searches.

    Args:
        save: called with the figures after each job.

    Returns:
        As `summarise_search`, and the jobs as `kept`, by their names.

    Raises:
        OSError: the figures cannot be written.
    """
    kept: dict[str, dict[str, float]] = {}
    for one in small_searches():
        kept[one.name] = measure_small(one)
        save({**summarise_search(list(kept.values())), "kept": kept})
    return {**summarise_search(list(kept.values())), "kept": kept}


def measure_small(one: SmallSearch) -> dict[str, float]:
    """Train a network for a small job, once, and let it propose by several seeds.

    Returns:
        Means over these of (score - start) ÷ (best - start): `share`, and at as many evaluations (`asked`) `greedy` and
        `random`; `seconds` of CPU of the training.
    """
    evaluator = one.evaluator()

    def score(counts: Counts) -> float:
        return RewardWeights().reward(one.began, evaluator.outcome(counts))

    model, seconds = one.trained(OURS)
    found: dict[str, list[float]] = {}
    for seed in range(one.seed, one.seed + DRAWN * len(SEEDS), len(SEEDS)):
        own, asked = one.proposed(model, seed)
        scores = {
            "share": own,
            "greedy": greedy_search(one.space, one.start, score, asked),
            "random": random_search(one.space, score, asked, seed),
        }
        for name, value in scores.items():
            found.setdefault(name, []).append(one.share(value))
        found.setdefault("asked", []).append(asked)
    return {**{name: float(np.mean(values)) for name, values in found.items()}, "seconds": seconds}


def summarise_search(jobs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Take what `measure_small` returns of jobs together.

    Returns:
        Means with `low` and `high` of a bootstrap over the jobs; `above`: likewise how much `share` is above `greedy`
        and `random`, job by job; `asked`, the mean; `seconds`, the most; `n`.
    """
    shares = {name: np.array([one[name] for one in jobs]) for name in ("share", "greedy", "random")}
    return {
        **{name: _interval(own) for name, own in shares.items()},
        "above": {name: _interval(shares["share"] - shares[name]) for name in ("greedy", "random")},
        "asked": float(np.mean([one["asked"] for one in jobs])), "seconds": max(one["seconds"] for one in jobs),
        "n": len(jobs),
    }  # fmt: skip


def measure_by_lstm() -> dict[str, Any]:
    """Train a network for each small job on what a performance model says, and score what it proposes by the twin.

    Returns:
        `share`: mean of (score - start) ÷ (best - start), with `low` and `high` of a bootstrap; `worse`, how often it
        is worse than the start; `n`.
    """
    shares = []
    for one in small_searches():
        counts = _by_performance_model(one.space, one.start, one.began, one.seed)
        score = RewardWeights().reward(one.began, one.evaluator().outcome(counts))
        shares.append((score - one.least) / (one.best - one.least))
    return {"share": _interval(shares), "worse": sum(share < -1e-9 for share in shares), "n": len(shares)}


def _by_performance_model(space: InstanceSpace, start: Counts, began: PlacementOutcome, seed: int) -> Counts:
    """The best placement by a network for which a performance model takes the twin's place; the start where none is."""
    job, nodes = space.job, space.nodes
    train, stop, _ = parts_in_time(record_past(job, nodes, SHORT_PAST, seed))
    window = np.tile([float(job.arrivals_rps.sum()), *start.reshape(-1)], (WINDOW, 1))
    evaluator = LearnedEvaluator(train_performance(train, stop, SLOTS, seed), window)
    model = train_placement(space, [evaluator], RewardWeights(), seed, start)
    (said,) = evaluator.outcomes([start], [(start, began)])  # by the model itself, so that what it errs by is in both
    found = model.proposer(space, evaluator, RewardWeights()).walk(start, said, seed)
    return found[0].counts if found else start


def _interval(values: Sequence[float] | Floats) -> dict[str, float]:
    random = np.random.default_rng(0)
    means = [float(np.mean(random.choice(values, len(values)))) for _ in range(2_000)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return {"mean": float(np.mean(values)), "low": low, "high": high}
