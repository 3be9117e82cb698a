"""Instances of every stage for a load at the sources: rates go down the graph, so that one decision fixes all stages.

Proactive autoscaling paper, section "Autoscaling", repaired as its cited method does it: DS2 (Kalavri et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

CATCH_UP_S = 300.0
"""Within which records that wait are to be worked on."""
ROUNDING = 1e-9


class ScaledStage(NamedTuple):
    """A stage of a job, or a block of several that run as one query.

    Attributes:
        capacity_rps: records/s of one instance while it is busy.
        selectivity: records that it makes of one.
        least: instances.
        most: likewise.
        lag: records that wait for it.
        offloaded: whether it runs on another cluster, where `most` does not bind it.
    """

    capacity_rps: float
    selectivity: float = 1.0
    least: int = 1
    most: int = 1 << 30
    lag: float = 0.0
    offloaded: bool = False


class StageNeed(NamedTuple):
    """What a stage needs.

    Attributes:
        rps: records/s that reach it, and those that wait over the time in which they are to be worked on.
        needed: instances for that, without bounds.
        instances: within its bounds.
    """

    rps: float
    needed: int
    instances: int


def needs_of(
    stages: Mapping[str, ScaledStage], taken: Mapping[str, Mapping[str, float]], source_rps: Mapping[str, float],
    utilisation: float = 1.0,
) -> dict[str, StageNeed]:  # fmt: skip
    """Return what each stage needs at a load.

    A stage that cannot have what it needs sends on only what it can do: nobody else is given instances for records that
    cannot come.

    Args:
        stages: by name.
        taken: by stage the stages before it, with the share of their records that it takes.
        source_rps: records/s that reach stages from outside.
        utilisation: share of its time that an instance may be busy; 1 is the paper's arithmetic.
    """
    order = TopologicalSorter({name: taken.get(name, {}).keys() for name in stages}).static_order()
    sent: dict[str, float] = {}
    found: dict[str, StageNeed] = {}
    for name in order:
        one = stages[name]
        rps = source_rps.get(name, 0.0) + one.lag / CATCH_UP_S
        rps += sum(share * sent[other] for other, share in taken.get(name, {}).items())
        needed = max(1, math.ceil(rps / (one.capacity_rps * utilisation) - ROUNDING))
        able = rps if one.offloaded or needed <= one.most else min(rps, one.capacity_rps * one.most)
        sent[name] = one.selectivity * able
        most = max(needed, one.least) if one.offloaded else one.most
        found[name] = StageNeed(rps, needed, min(max(needed, one.least), most))
    return found


def source_need_rps(forecast_rps: Sequence[float] | None, observed_rps: Sequence[float]) -> float | None:
    """Return the records/s to provide for: the forecast's highest, and the last observed; without one the last three.

    Args:
        forecast_rps: of the steps ahead; None, or a value that is not finite: there is none to be used.
        observed_rps: of the last windows, the newest last.

    Returns:
        None where nothing is known: a missing value is never 0.
    """
    seen = [rps for rps in observed_rps if math.isfinite(rps) and rps >= 0]
    if forecast_rps and all(math.isfinite(rps) for rps in forecast_rps):
        return max([*forecast_rps, *seen[-1:]])
    return max(seen[-3:], default=None)
