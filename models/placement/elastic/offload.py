"""When a stage goes to another cluster, because its own is full and the way there costs less than to wait; and back.

Proactive autoscaling paper, "Autoscaling", with the conditions of its text instead of its formula's one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from configs.topology import Topology
from models.contract.queueing import micro_batch

STAY_S = 3600.0
"""For which a stage is planned to stay there."""
IN_TURN = 3
"""Decisions that have to agree."""
OUTAGE_S = 40.0
"""For which a query stands still while it is moved, as was measured (`tidecast plan --demo`)."""
BACK = 0.8
"""Share of the latency there at which it is better here again."""


class OffloadChoice(NamedTuple):
    """What is known of a stage at a decision, on its own cluster and on the other one.

    Attributes:
        needed: instances that its load needs, without bounds.
        most: instances for which its own cluster has room.
        here_s: 95 % of its latency with `most` instances here; infinite where these do not keep up.
        there_s: likewise on the other cluster.
        rps: records/s that reach it.
        there_rps: records/s that it can do there.
        link_s: time of a record to the other cluster and back.
        outage_s: for which it stands still while it is moved, as was measured.
    """

    needed: int
    most: int
    here_s: float
    there_s: float
    rps: float
    there_rps: float
    link_s: float
    outage_s: float


class Offload(NamedTuple):
    """Where a stage is.

    Attributes:
        there: whether on the other cluster.
        since_s: when it went there.
        agreed: decisions in turn that asked for a change.
    """

    there: bool = False
    since_s: float = -math.inf
    agreed: int = 0


def move_s(stage: OffloadChoice) -> float:
    """Return what a move adds to the latency of a record: the way, and the records that wait while it stands still.

    The backlog of an outage is a triangle of rate x outage^2 ÷ 2 x mu ÷ (mu - rate) record-seconds, spread over the
    records of the stay.
    """
    if stage.there_rps <= stage.rps:
        return math.inf
    spread = stage.outage_s**2 / (2 * STAY_S) * stage.there_rps / (stage.there_rps - stage.rps)
    return stage.link_s + spread


def decide_offload(now_s: float, before: Offload, stage: OffloadChoice) -> Offload:
    """Return where the stage is from now on.

    It goes where it needs more than its own cluster has, and is slower here than there with the way and the move;
    it comes back, not before half the planned stay, where it needs one instance less than there is room for, and
    is by a fifth quicker here. Either where three decisions agree.
    """
    if before.there:
        asks = stage.needed <= stage.most - 1 and stage.here_s < BACK * (stage.link_s + stage.there_s)
        asks = asks and not 0 <= now_s - before.since_s < STAY_S / 2  # below 0: the clock was set back
    else:
        asks = stage.needed > stage.most and stage.here_s > move_s(stage) + stage.there_s
    agreed = before.agreed + 1 if asks else 0
    if agreed < IN_TURN:
        return before._replace(agreed=agreed)
    return Offload(not before.there, now_s, 0)


def offload_choice(
    topology: Topology, rooms: Sequence[int], home: str, other: str, needed: int, inputs: Mapping[str, Any]
) -> OffloadChoice | None:
    """Return what is known of a query on its own cluster and on another one, by a decision about it.

    None where that tells too little. Where there is no room its latency is infinite.

    Args:
        topology: of the job.
        rooms: executors that it may have at home and there.
        home: its own cluster.
        other: to which it may go, or where it is.
        needed: executors that were decided.
        inputs: of that decision.
    """
    rps, per_record_s = (
        max((known_number(inputs.get(name)) for name in names), default=0.0)
        for names in (("arrival_rps", "forecast_rps"), ("per_record_s",))
    )
    if not rps or not per_record_s:
        return None
    cores = [topology.clusters[name].executor_cores for name in (home, other)]
    able = [room * own / per_record_s for room, own in zip(rooms, cores, strict=True)]
    overhead_s = known_number(inputs.get("overhead_s")) or topology.overhead_s
    late_s = [_late_s(topology, rps, one, overhead_s) for one in able]
    link_s = topology.round_trip_ms(home, other) / 1000
    return OffloadChoice(needed, rooms[0], late_s[0], late_s[1], rps, able[1], link_s, OUTAGE_S)


def known_number(value: Any) -> float:
    """Return a number above 0 that a decision tells; 0 for anything else."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if known else 0.0


def _late_s(topology: Topology, rps: float, able_rps: float, overhead_s: float) -> float:
    if able_rps <= 0:
        return math.inf
    batch = micro_batch(rps, able_rps, overhead_s, topology.trigger_s)
    return batch.quantile_s(topology.quantile) if batch.stable else math.inf
