"""All schemes on the papers' testbeds in the twin: latency, throughput and load beside Storm's default and R-Storm."""

from __future__ import annotations

from itertools import product
from statistics import median
from typing import Any

import numpy as np

from models.placement.graph import Floats
from models.placement.instances.initial import place_initially
from models.placement.instances.job import Counts
from models.placement.learned.evaluator import TwinEvaluator
from models.placement.learned.reward import RewardWeights
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import train_placement
from models.policy.rules.elasticity import Elasticity, PrintedElasticity
from pipelines.bench.placement.elastic_run import HourResult, run_hour
from pipelines.bench.placement.schemes import SCHEMES
from pipelines.bench.placement.testbeds import Testbed, testbeds

FACTORS, SEEDS, MINUTES = (0.5, 1.0, 2.0), 5, 60
STREAMS = ("steady", "fluctuating")
"""Always the job's rate, or 0.8 to 1.2 times as much, drawn per minute."""
HOW = {"fixed": None, "elastic": Elasticity(), "as printed": PrintedElasticity()}
"""What becomes of the instances."""
LEARNED = "Pareto bins + DQN"


def rates(stream: str, seed: int) -> Floats:
    """Return the (60,) multiples of the source's rate, the same for all schemes."""
    if stream == "steady":
        return np.ones(MINUTES)
    return np.random.default_rng(seed).uniform(0.8, 1.2, MINUTES)


def measure_papers() -> dict[str, Any]:
    """Run every scheme on every testbed, its instances fixed or elastic; learned ones where there is one domain.

    Returns:
        By testbed, stream and scheme, fixed, elastic, and elastic as the paper has it: medians over round trips and
        service times x 0.5, 1 and 2 and seeds, of `latency_ms`, `throughput_rps`, `load` and `instances`, and of the
        `latency`, `throughput` and `load` that it has beside those of Storm's default and of R-Storm, both with fixed
        instances, less 1.
    """
    runs: dict[tuple[str, str, str, str], list[tuple[tuple[float, float, int], HourResult]]] = {}
    learned: dict[float, Counts] = {}
    for trips, service in product(FACTORS, FACTORS):
        for testbed in testbeds(trips, service):
            one_domain = len(testbed.nodes.round_trip) == 1
            if one_domain and service not in learned:
                learned[service] = _learned(testbed)
            for seed, stream in product(range(SEEDS), STREAMS):
                placed = {
                    name: scheme(testbed.job, testbed.nodes, testbed.limit_ms, seed) for name, scheme in SCHEMES.items()
                }
                if one_domain:
                    placed[LEARNED] = learned[service]
                for name, counts in placed.items():
                    for how, rule in HOW.items():
                        found = run_hour(testbed, counts, rates(stream, seed), rule)
                        key = testbed.name, stream, name, how
                        runs.setdefault(key, []).append(((trips, service, seed), found))
    summary: dict[str, Any] = {}
    for (place, stream, name, how), own in runs.items():
        rivals = {rival: runs[place, stream, rival, "fixed"] for rival in ("Storm default", "R-Storm")}
        summary.setdefault(f"{place}, {stream}", {}).setdefault(name, {})[how] = _beside(own, rivals)
    return summary


def _learned(testbed: Testbed) -> Counts:
    """The best placement that a network proposes which was trained on the job, from Pareto bins on."""
    job, nodes, weights = testbed.job, testbed.nodes, RewardWeights()
    evaluator, start = TwinEvaluator(job, nodes), place_initially(job, nodes)
    space = InstanceSpace(job, nodes)
    model = train_placement(space, [evaluator], weights, seed=1, start=start)
    found = model.proposer(space, evaluator, weights).propose(start, evaluator.outcome(start), seed=1)
    return found[0].counts if found else start


def _beside(own: list[Any], rivals: dict[str, list[Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {name: median(getattr(one, name) for _, one in own) for name in HourResult._fields}
    for rival, theirs in rivals.items():
        other = dict(theirs)
        found[rival] = {
            short: median(getattr(one, name) / getattr(other[key], name) for key, one in own) - 1
            for short, name in (("latency", "latency_ms"), ("throughput", "throughput_rps"), ("load", "load"))
        }
    return found
