"""When a stage goes to another cluster, because its own is full and the way there costs less than to wait; and back.

Proactive autoscaling paper, "Autoscaling", with the conditions of its text instead of its formula's one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

STAY_S = 3600.0
"""For which a stage is planned to stay there."""
IN_TURN = 3
"""Decisions that have to agree."""
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


def move_s(stage: OffloadChoice, stay_s: float = STAY_S) -> float:
    """Return what a move adds to the latency of a record: the way, and the records that wait while it stands still.

    The backlog of an outage is a triangle of rate x outage^2 ÷ 2 x mu ÷ (mu - rate) record-seconds, spread over the
    records of the stay.
    """
    if stage.there_rps <= stage.rps:
        return math.inf
    spread = stage.outage_s**2 / (2 * stay_s) * stage.there_rps / (stage.there_rps - stage.rps)
    return stage.link_s + spread


@dataclass(frozen=True)
class OffloadRule:
    """The rule of one stage that may be moved."""

    stay_s: float = STAY_S

    def decide(self, now_s: float, before: Offload, stage: OffloadChoice) -> Offload:
        """Return where the stage is from now on.

        It goes where it needs more than its own cluster has, and is slower here than there with the way and the move;
        it comes back, not before half the planned stay, where it needs one instance less than there is room for, and
        is by a fifth quicker here. Either where three decisions agree.
        """
        if before.there:
            asks = stage.needed <= stage.most - 1 and stage.here_s < BACK * (stage.link_s + stage.there_s)
            asks = asks and now_s - before.since_s >= self.stay_s / 2
        else:
            asks = stage.needed > stage.most and stage.here_s > move_s(stage, self.stay_s) + stage.there_s
        agreed = before.agreed + 1 if asks else 0
        if agreed < IN_TURN:
            return before._replace(agreed=agreed)
        return Offload(not before.there, now_s, 0)
