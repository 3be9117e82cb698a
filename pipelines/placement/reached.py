"""Whether the clusters answer on which a plan puts queries, before anything of it is begun or moved."""

from __future__ import annotations

import socket
from collections.abc import Collection

from configs.topology import Topology
from models.placement.plan.choose import PlanError, choose_placement
from models.placement.plan.measured import Placement
from models.placement.plan.missing import summary, without_clusters
from models.placement.plan.moved import move_block
from models.placement.plan.shares import allowed_clusters

ANSWER_S = 3.0
"""Seconds within which one address of a master has to take a connection."""
STANDALONE = "spark://"


def refuse_away(topology: Topology, placement: Placement, factor: float = 1.0, wanted: Placement | None = None) -> None:
    """Refuse a placement of which a cluster does not answer; nothing is changed.

    Only masters that are stated as `spark://HOST:PORT` are asked, or `spark://ONE:PORT,OTHER:PORT`, of which one has to
    answer.

    Args:
        topology: of the job.
        placement: of its queries.
        factor: of the sources' rates, for a plan that does without what is away.
        wanted: where the queries of a job that was begun are wanted; None: it was not.

    Raises:
        PlanError: a cluster is away; with its address, why, and what does without it.
    """
    masters = {name: topology.clusters[name].master or "" for name in {block.cluster for block in placement.blocks}}
    away = {name: why for name, master in sorted(masters.items()) if (why := why_away(master))}
    if away:
        told = ", ".join(f"the cluster {name} ({masters[name]}) does not answer: {why}" for name, why in away.items())
        other = _planned_without(topology, away, factor) if wanted is None else _moved_from(topology, away, wanted)
        raise PlanError(f"{topology.name}: {told}. Start it. {other}")


def refuse_move(topology: Topology, cluster: str) -> None:
    """Refuse to end a query for a cluster that does not answer; one that the job does not have is not asked.

    Raises:
        PlanError: with its address and why.
    """
    own = topology.clusters.get(cluster)
    if own is not None and (why := why_away(own.master or "")):
        raise PlanError(
            f"{topology.name}: the cluster {cluster} ({own.master}) does not answer: {why}. Start it first; the query "
            "stays where it is."
        )


def why_away(master: str) -> str:
    """Return why a standalone master cannot be reached; "" where one of its addresses takes a connection.

    Args:
        master: as a cluster states it; of another kind, or "", it is not asked.
    """
    why = ""
    for address in master.removeprefix(STANDALONE).split(",") if master.startswith(STANDALONE) else ():
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), ANSWER_S):
                return ""
        except (OSError, ValueError, OverflowError) as error:
            why = f"{error}" or type(error).__name__
    return why


def _planned_without(topology: Topology, away: Collection[str], factor: float) -> str:
    """What there is for a job that was not begun: another plan, and how that is had."""
    other = without_clusters(topology, away)
    if other is None:
        pins = [f"operators.{name}.cluster" for name, one in topology.operators.items() if one.cluster in away]
        return f"There is no plan without it: {' and '.join(pins)} says so." if pins else "There is no other one."
    try:
        made = choose_placement(other, factor).placement
    except PlanError as error:
        return f"There is no plan without it: {error}"
    how = "pin its operators elsewhere" if topology.broker in away else "take it out of the file"
    return f"A plan without it: {summary(made)}; {how} for that."


def _moved_from(topology: Topology, away: Collection[str], wanted: Placement) -> str:
    """What there is for a job that was begun: its queries are fixed, and may be moved."""
    moves, stuck = list[str](), list[str]()
    for block in [one for one in wanted.blocks if one.cluster in away]:
        own = block.operators[0]
        for cluster in allowed_clusters(topology, block.operators):
            if cluster not in away:
                try:
                    wanted = move_block(topology, wanted, own, cluster)
                except PlanError:
                    continue
                moves.append(f"`tidecast job move {topology.name} {own} {cluster}`")
                break
        else:
            stuck.append(own)
    if stuck:
        return f"No other cluster may have, or has room for, the query of {' and that of '.join(stuck)}."
    return f"Without it: {', '.join(moves)}." if moves else "The job stays as it is."
