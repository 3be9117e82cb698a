"""Checkpoint intervals and recovery under a contract: unified batch-stream runtime paper, checkpoints and recovery.

The interval that loses least is Young's, √(2·C·MTBF) ("A first order approximation to the optimum checkpoint interval",
CACM 17 (1974)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from configs.limits import RecoveryTerms


class Outage(NamedTuple):
    """Seconds since the newest checkpoint, until the failure is detected, and until the restarted job reads again."""

    age_s: float
    detection_s: float
    restart_s: float

    @property
    def stopped_s(self) -> float:
        """Seconds in which nothing is processed."""
        return self.detection_s + self.restart_s


def youngs_interval(cost_s: float, mtbf_s: float) -> float:
    """Return √(2·C·MTBF), seconds: the interval of checkpoints that loses least.

    Args:
        cost_s: C, seconds of a checkpoint, at least 0.
        mtbf_s: mean time between failures, seconds, above 0.
    """
    return math.sqrt(2 * cost_s * mtbf_s)


def checkpoint_interval(cost_s: float, mtbf_s: float, terms: RecoveryTerms) -> float:
    """Return Young's interval, clipped to what may be lost and to the overhead; of the two, what may be lost is kept.

    Args:
        cost_s: C, seconds of a checkpoint, at least 0.
        mtbf_s: mean time between failures, seconds, above 0.
        terms: of recovery.
    """
    return min(max(youngs_interval(cost_s, mtbf_s), cost_s / terms.overhead_max), terms.rpo_s)


def backlog_after(live_rps: float, outage: Outage) -> float:
    """Return the records that wait when a job reads again: all since the newest checkpoint."""
    return live_rps * (outage.age_s + outage.stopped_s)


def catch_up_s(live_rps: float, service_rps: float, outage: Outage) -> float:
    """Return the seconds of work until an outage's backlog is gone; infinite where the job only just keeps up."""
    spare = service_rps - live_rps
    return backlog_after(live_rps, outage) / spare if spare > 0 else math.inf


def service_for(live_rps: float, outage: Outage, rto_s: float) -> float:
    """Return the records/s that a job must serve to be back within a time: λ + backlog/(rto − time stopped).

    Args:
        live_rps: λ, records/s.
        outage: what happened.
        rto_s: seconds from the failure to the end of the backlog.

    Raises:
        ValueError: detection and restart alone take that long.
    """
    left = rto_s - outage.stopped_s
    if left <= 0:
        stopped = f"detection and restart take {outage.stopped_s:g} s"
        raise ValueError(f"rto_s={rto_s:g}: {stopped}, which no capacity shortens. Allow more")
    return live_rps + backlog_after(live_rps, outage) / left
