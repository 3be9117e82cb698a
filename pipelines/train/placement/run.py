"""A network that places a job's queries: trained in the twin, judged, registered, and promoted if it wins."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from configs.bounds import WEEK_S
from configs.topology import Topology
from models.placement.learned.evaluator import Evaluator, LearnedEvaluator
from models.placement.learned.judged import SearchShares, decide, judge_networks
from models.placement.learned.past import steady_steps
from models.placement.learned.queries import QueryEvaluator, QuerySpace, weights_of
from models.placement.learned.training import OURS, PlacementModel, train_placement
from models.placement.performance.model import PerformanceModel
from models.placement.plan.measured import Measure, Placement
from models.placement.rates import rates_of
from pipelines.figures.written import find_commit
from pipelines.registry.artifacts import RegistryError, UnreadableError
from pipelines.registry.placements import PlacementRegistry
from pipelines.train.card import describe_making
from pipelines.train.promotion import OVERTAKEN, overtaken

LOADS = (1.0, 0.5, 0.75, 1.5, 2.0)
"""Of the rates at which a network is trained and judged: the load that it will meet is another one."""
TWIN, LSTM = "twin", "lstm"
ENVIRONMENTS = {
    TWIN: "in the twin, where the queries are followed batch by batch",
    LSTM: "on what the performance model of the running job said (`<topology>-performance`)",
}  # fmt: skip
JUDGED = 0
"""Seed of the starts by which networks are judged: the same for all, so that none of them is lucky in these."""


def spaces_of(topology: Topology, placement: Placement) -> list[QuerySpace]:
    """Return the placements of a job's queries at each of LOADS."""
    blocks = tuple(block.operators for block in placement.blocks)
    return [QuerySpace(Measure(topology, rates_of(topology, load)), blocks) for load in LOADS]


def trained_for(stated: Topology, measured: Topology) -> Topology:
    """Return a running job as it was measured, at the stated rates where these are higher: a network serves peaks, too.

    Args:
        stated: topology of the job.
        measured: the same, with rates and work as measured.
    """
    sources = {
        name: one.model_copy(update={"rps": max(one.rps, stated.sources[name].rps)})
        for name, one in measured.sources.items()
    }
    return measured.model_copy(update={"sources": sources})


def has_network(
    registry: PlacementRegistry, topology: Topology, placement: Placement, env: str | None = None
) -> bool:  # fmt: skip
    """Return whether a network for these queries and clusters is champion, or lost so lately that none is trained.

    Without a champion that is a week: the next one is likely to lose, too.

    Args:
        registry: of placement networks.
        topology: of the job.
        placement: where its queries are.
        env: in which it has to be trained, twin or lstm, or to have won over one that was; None: either.

    Raises:
        RegistryError: MLflow does not answer.
    """
    name, space = topology.name, spaces_of(topology, placement)[0]
    champion = registry.champion_version(name)
    if champion is not None and _network(registry, name, space) is None:
        champion = None  # it is for others
    if champion is not None and (env is None or registry.tags(name, champion).get("env") == env):
        return True
    return _lost_s(registry, name, space, env or TWIN, champion) is not None


def champion_for(registry: PlacementRegistry, space: QuerySpace) -> PlacementModel:
    """Return the champion where it is for these queries.

    Args:
        registry: of placement networks.
        space: placements of the queries.

    Raises:
        RegistryError: none is for them, and what a next run does about it; or MLflow does not answer.
        OSError: a file cannot be downloaded or read.
    """
    name = space.measure.topology.name
    network = _network(registry, name, space)
    if network is not None:
        return network
    lost_s = _lost_s(registry, name, space, TWIN)
    by_lstm_s = _lost_s(registry, name, space, LSTM)
    if lost_s is None and by_lstm_s is None:
        return registry.load(name, space)  # refuses it, and says to train one
    if lost_s is None:
        raise RegistryError(
            f"{name}: none serves for these queries, and one that was trained on the job's performance model lost. A "
            "run of the DAG plan_placement with `env: twin` trains one in the twin."
        )
    made, until = (f"{datetime.fromtimestamp(at, UTC):%-d %B %Y at %H:%M} UTC" for at in (lost_s, lost_s + WEEK_S))
    lstm = "; a run with `env: lstm` trains one on the job's performance model, where that is trusted"
    raise RegistryError(
        f"{name}: none serves for these queries. One that was trained on {made} lost, so no other is trained until "
        f"{until}. Till then the plan stands alone{lstm if by_lstm_s is None else ''}."
    )


def train_network(
    registry: PlacementRegistry, topology: Topology, placement: Placement, performance: PerformanceModel | None = None
) -> dict[str, Any]:
    """Train a network for a job's queries, register it as `challenger`, and make it champion if it wins.

    It wins if it comes in the twin to as much of the best placement as drawn ones do at as many evaluations, and as the
    champion for the same queries does; and if what served as it began still does. The run gets parameters, the curve,
    and how it and both simple searches did.
    What is drawn in the training differs from version to version: one that was rejected is not trained again.

    Args:
        registry: of placement networks.
        topology: of the job, as it was measured (`trained_for`), or as it is stated.
        placement: where its queries are.
        performance: by which placements are told in the training; None: by the twin.

    Returns:
        JSON values: `version`, `promoted`, `reason`, `run` (its id).

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        NoRoomError: the clusters have no room for the queries.
    """
    spaces, name = spaces_of(topology, placement), topology.name
    last, env = registry.newest_version(name), TWIN if performance is None else LSTM
    seed = 0 if last is None else int(last.version)
    with registry.training(name, f"placement of {name}") as run:
        run.parameters({
            "seed": seed, "transitions": OURS.transitions, "loads": LOADS, "env": env,
            "queries": " | ".join("+".join(block) for block in spaces[0].blocks), "clusters": spaces[0].clusters,
        })  # fmt: skip
        began = time.perf_counter()
        start = spaces[0].counts(placement)
        evaluators: list[Evaluator] = [
            QueryEvaluator(space) if performance is None
            else LearnedEvaluator(performance, steady_steps(spaces[0], start, load), spaces[0].executor_cores)
            for space, load in zip(spaces, LOADS, strict=True)
        ]  # fmt: skip
        model = train_placement(
            spaces[0], evaluators, weights_of(spaces[0]), seed,
            start if spaces[0].placement(start) is not None else None, OURS,
        )  # fmt: skip
        run.metrics({"seconds": time.perf_counter() - began})
        run.curve((step, {"score": score}) for step, score in enumerate(model.curve))
        before, champion = registry.champion_version(name), _network(registry, name, spaces[0])
        shares, *theirs = judge_networks([model] if champion is None else [model, champion], spaces, JUDGED)
        run.metrics(shares._asdict())
        promoted, reason = decide(shares, theirs[0] if theirs else None)
        card = _card(topology, spaces[0], shares, reason, env, run.id)
        version = registry.register(run, name, model, spaces[0], card, {"env": env})
        if promoted and not registry.succeed(name, version, before):
            present = registry.champion_version(name)
            promoted, reason = False, overtaken(before, present).removesuffix(" Train again.")  # no run would
        run.tags({"challenger": version, "champion": before or "", "outcome": reason})
        verdict = {"version": version, "promoted": promoted, "reason": reason, "run": run.id}
        registry.write_verdict(name, run.id, verdict)
    return verdict


def _lost_s(
    registry: PlacementRegistry, name: str, space: QuerySpace, env: str, champion: str | None = None
) -> float | None:  # fmt: skip
    """When the newest network was made that lost, so that none is trained in `env`, epoch seconds; None: one is.

    Beside a champion any later one is enough: both were judged in the twin, and else each run would train another.
    """
    since_ms = 1000 * (time.time() - WEEK_S)
    made = (
        float(one.creation_timestamp) / 1000
        for one in reversed(registry.versions(name))  # the first that lost is enough: each is downloaded
        if one.tags.get("env") == env
        and (one.creation_timestamp > since_ms if champion is None else int(one.version) > int(champion))
        and _has_lost(registry, name, space, str(one.version), one.tags.get("verdict", ""))
    )
    return next(made, None)


def _has_lost(registry: PlacementRegistry, name: str, space: QuerySpace, version: str, verdict: str) -> bool:
    """Whether a version is for these queries and clusters, and was rejected, not for coming too late."""
    lost = verdict.startswith("rejected") and not verdict.startswith(OVERTAKEN)
    return lost and _network(registry, name, space, version) is not None


def _network(
    registry: PlacementRegistry, name: str, space: QuerySpace, version: str | None = None
) -> PlacementModel | None:  # fmt: skip
    """A version, by default the champion, where it is for these queries and clusters."""
    if version is None and registry.champion_version(name) is None:
        return None
    try:
        return registry.load(name, space, version)
    except UnreadableError:
        return None


def _card(topology: Topology, space: QuerySpace, shares: SearchShares, reason: str, env: str, run: str) -> str:
    return "\n\n".join([
        f"# Placement network of {topology.name}",
        "Proposes on which cluster each query runs and with how many executors, from where they are (Pa-Stream paper). "
        "Queries: " + "; ".join("+".join(block) for block in space.blocks)
        + f". Clusters: {', '.join(space.clusters)}.",
        f"Trained {ENVIRONMENTS[env]}, at {', '.join(f'{load:g}' for load in LOADS)} times the load.",
        f"Of the best placement in the twin it comes to {shares.network:.3f} from {shares.starts} drawn starts; single "
        f"best moves to {shares.greedy:.3f}, drawn placements to {shares.random:.3f}, at as many evaluations.",
        f"{reason[:1].upper()}{reason[1:]}.",
        describe_making(
            run, find_commit(), "plan_placement", {"topology": topology.name, "env": env},
            "the topology's file, the job's placement and performance model as they were, and what `metrics` told of "
            "it then (that is not kept), as many versions, and no champion for these queries",
            "other queries or clusters: it is of no use for others, and is refused there. What it proposes was judged "
            "in the twin alone.",
        ),
    ])  # fmt: skip
