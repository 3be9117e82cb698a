"""Learned placement beside all placements, greedy moves and random search; the performance model beside simple ones."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import Counts, ParallelJob, StreamEdge, has_room
from models.placement.learned.evaluator import LearnedEvaluator, TwinEvaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.rivals import CountingEvaluator, greedy_search, random_search
from models.placement.learned.schemes import STEPS as WALK
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import OURS, PAPER, PlacementTraining, train_placement
from models.placement.performance.model import absolute_error, linear_regression, train_performance
from models.placement.performance.network import SMALL, LayerSizes
from models.placement.performance.windows import STEP_S as MINUTE_S
from models.placement.performance.windows import STEPS as WINDOW
from models.placement.performance.windows import History, parts_in_time
from models.placement.twin.follow import empty_state, follow_job, move_instances
from models.placement.twin.station import STEP_S
from models.twin.sim.arrivals import fill_gaps
from pipelines.bench.placement.testbeds import testbeds
from pipelines.traces.shipped import find_shipped

SHAPES = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2))
"""Operators and nodes of the small jobs, of which every placement is looked at."""
SEEDS, SLOTS = (100, 101, 102), 3
STEPS, SHORT_PAST, KEPT = 2_000, 1_000, 3
"""Minutes of the past from which performance is learned, of a small job, and for how many of them a placement is kept.
"""
NEAR = 0.5
"""Share of the placements of a past that lie some moves away from the one at the start."""
LOAD, LEAST, MOST = "iot 5min", 0.4, 1.2
"""Measured load of that past, of which a step is a minute, and between which multiples of a job's rate it lies."""


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
        seed: of it.
        space: its placements.
        start: the first one, drawn.
        began: what that comes to.
        least, best: score of it, and of the best placement that there is.
    """

    seed: int
    space: InstanceSpace
    start: Counts
    began: PlacementOutcome
    least: float
    best: float

    def evaluator(self) -> TwinEvaluator:
        """Return a twin that knows no placement yet."""
        return TwinEvaluator(self.space.job, self.space.nodes)

    def proposed(self, how: PlacementTraining) -> tuple[float, int, float]:
        """Return the best score that a network proposes, evaluations for that, and seconds of its training."""
        begun, weights = time.perf_counter(), RewardWeights()
        model = train_placement(self.space, [self.evaluator()], weights, self.seed, self.start, how)
        seconds, counted = time.perf_counter() - begun, CountingEvaluator(self.evaluator())
        found = model.proposer(self.space, counted, weights).propose(self.start, self.began, self.seed)
        return (found[0].score if found else self.least), counted.asked, seconds


def small_searches() -> Iterator[SmallSearch]:
    """Yield the small jobs whose first placement is not the best."""
    for shape, seed in itertools.product(SHAPES, SEEDS):
        job, nodes = small_job(seed, *shape)
        evaluator, start = TwinEvaluator(job, nodes), draw_counts(job, nodes, np.random.default_rng(seed), more=False)
        began, weights = evaluator.outcome(start), RewardWeights()
        least = weights.reward(began, began)
        best = max(weights.reward(began, evaluator.outcome(one)) for one in every_placement(job, nodes))
        if best > least + 1e-9:
            yield SmallSearch(seed, InstanceSpace(job, nodes), start, began, least, best)


def measure_paper_settings() -> dict[str, Any]:
    """Train a network for each small job by the settings that the paper prints; some two minutes each.

    Returns:
        `share`: mean of (score - start) ÷ (best - start), with `low` and `high` of a bootstrap; `seconds` of the
        longest training; `n`.
    """
    shares, seconds = [], 0.0
    for one in small_searches():
        score, _, took = one.proposed(PAPER)
        shares.append((score - one.least) / (one.best - one.least))
        seconds = max(seconds, took)
    return {"share": _interval(shares), "seconds": seconds, "n": len(shares)}


def measure_search() -> dict[str, Any]:
    """Train a network for each small job, and hold what it proposes against all placements.

    Returns:
        `share`: mean of (score - start) ÷ (best - start), with `low` and `high` of a bootstrap; likewise `greedy` and
        `random`, at as many evaluations as the proposals took, random search at as many as the training took, and
        `lstm`: a network trained on what a performance model says of the job, scored by the twin; `worse`, how often
        what that proposes is worse than the start; `above`: how much the first is above `greedy` and `random`, job by
        job; `seconds` of the longest training; `n`.
    """
    shares: dict[str, list[float]] = {}
    seconds, worse = 0.0, 0
    for one in small_searches():
        evaluator, least = one.evaluator(), one.least

        def score(
            counts: Counts, evaluator: TwinEvaluator = evaluator, began: PlacementOutcome = one.began
        ) -> float:  # fmt: skip
            return RewardWeights().reward(began, evaluator.outcome(counts))

        own, asked, took = one.proposed(OURS)
        seconds = max(seconds, took)
        found = {
            "share": own,
            "greedy": greedy_search(one.space, one.start, score, asked),
            "random": max(least, random_search(one.space, score, asked, one.seed)),
            "random, as many as in training": max(least, random_search(one.space, score, OURS.transitions, one.seed)),
        }
        found["lstm"] = score(_by_performance_model(one.space, one.start, one.began, one.seed))
        worse += found["lstm"] < least - 1e-9
        for name, value in found.items():
            shares.setdefault(name, []).append((value - least) / (one.best - least))
    told = {name: _interval(own) for name, own in shares.items()}
    above = {name: _interval(np.subtract(shares["share"], shares[name])) for name in ("greedy", "random")}
    return {**told, "above": above, "seconds": seconds, "worse": worse, "n": len(shares["share"])}


def _by_performance_model(space: InstanceSpace, start: Counts, began: PlacementOutcome, seed: int) -> Counts:
    """The best placement by a network for which a performance model takes the twin's place; the start where none is."""
    job, nodes = space.job, space.nodes
    train, stop, _ = parts_in_time(record_past(job, nodes, SHORT_PAST, seed))
    window = np.tile([float(job.arrivals_rps.sum()), *start.reshape(-1)], (WINDOW, 1))
    evaluator = LearnedEvaluator(train_performance(train, stop, SLOTS, seed), window)
    model = train_placement(space, [evaluator], RewardWeights(), seed, start)
    found = model.proposer(space, evaluator, RewardWeights()).propose(start, began, seed)
    return found[0].counts if found else start


def _interval(values: Sequence[float] | Floats) -> dict[str, float]:
    random = np.random.default_rng(0)
    means = [float(np.mean(random.choice(values, len(values)))) for _ in range(2_000)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return {"mean": float(np.mean(values)), "low": low, "high": high}


def record_past(job: ParallelJob, nodes: Nodes, steps: int, seed: int, start: Counts | None = None) -> History:
    """Follow a job in the twin under drawn placements and a measured load, and return its past by minutes.

    Args:
        job: of m operators.
        nodes: n of them.
        steps: minutes.
        seed: of what is drawn.
        start: placement of which every other one is some moves away; None: all are drawn.
    """
    random, factors = np.random.default_rng(seed), _load_of(steps)
    space = InstanceSpace(job, nodes)
    queued, counts = empty_state(job, nodes), draw_counts(job, nodes, random)
    rps, placed, measured = [], [], []
    for minute in range(steps):
        factor = float(factors[minute])
        queued, course = follow_job(job, nodes, counts, queued, np.full(int(MINUTE_S / STEP_S), factor), MINUTE_S)
        if minute % KEPT == KEPT - 1:
            near = start is not None and random.random() < NEAR
            counts = _walked(space, start, random) if near else draw_counts(job, nodes, random)  # type: ignore[arg-type]
            queued = move_instances(queued, counts)
        rps.append(factor * float(job.arrivals_rps.sum()))
        placed.append(counts)
        measured.append((course.latency_ms[0], course.load[0].mean()))
    return History(np.array(rps), np.array(placed), np.array(measured))


def _walked(space: InstanceSpace, counts: Counts, random: np.random.Generator) -> Counts:
    """A placement that as many allowed moves lead to as one walk of a proposal has at most."""
    for _ in range(int(random.integers(1, WALK + 1))):
        able = np.flatnonzero(space.farthest(counts) >= 1)
        if not len(able):
            break
        counts = space.after(counts, int(random.choice(able)), 1)
    return counts


def _load_of(steps: int) -> Floats:
    """Multiples of a job's rate, minute by minute: a step of LOAD each, between LEAST and MOST of them."""
    known = fill_gaps(find_shipped(LOAD).series().values[:steps])
    return np.asarray(np.interp(known, [known.min(), known.max()], [LEAST, MOST]))


def measure_performance(sizes: LayerSizes = SMALL) -> dict[str, Any]:
    """Train a performance model on a past in the twin, and try it on placements that it has not seen.

    Args:
        sizes: of its layers.

    Returns:
        `latency` and `load`: mean absolute error of the model ÷ that of the better of last value and linear regression;
        `error` (2,), `last` and `linear` likewise in ms and load; `seconds` of the training; `n` samples for testing.
    """
    testbed = testbeds()[-1]
    train, stop, test = parts_in_time(record_past(testbed.job, testbed.nodes, STEPS, seed=100))
    begun = time.perf_counter()
    model = train_performance(train, stop, slots=int(testbed.nodes.slots[0]), seed=1, sizes=sizes)
    seconds = time.perf_counter() - begun
    error, last = model.error(test), absolute_error(test.before, test.label)
    linear = absolute_error(linear_regression(train, test), test.label)
    ratio = error / np.minimum(last, linear)
    return {
        "latency": float(ratio[0]), "load": float(ratio[1]), "error": error.tolist(), "last": last.tolist(),
        "linear": linear.tolist(), "seconds": seconds, "n": len(test.label),
    }  # fmt: skip
