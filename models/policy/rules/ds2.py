"""DS2: executors from the true rate of one, the rate it would have if it never waited.

Source: Kalavri et al., "Three steps is all you need", OSDI 2018, and strymon-system/ds2 (`policy/scaling.rs`,
`bin/manager.rs`, `config/ds2.toml`). DS2 knows no backlog: it scales for the rate of the sources alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import ClassVar

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View
from models.policy.core.within import whole, within

INTERVAL_S = 10.0
"""Seconds from one decision to the next (`policy_interval` of the shipped configuration)."""


def optimal_parallelism(
    instances: Floats, processing_rps: Floats, output_rps: Floats, edges: Iterable[tuple[int, int]],
    over: Floats | float = 0.0,
) -> Floats:  # fmt: skip
    """Instances that each operator of a dataflow needs so that none holds up the sources (equations 7 and 8).

    `ceil((1 + over) * pi)` with `pi = sum of upstream outputs / (processing / instances)`; the output that an operator
    passes on grows with `pi / instances`, before rounding up. An operator without inputs is a source: it keeps its
    instances, and its output is what arrives.

    Args:
        instances: (..., operators) that run now.
        processing_rps: (..., operators) true processing rate of all instances together.
        output_rps: (..., operators) true output rate of all instances together.
        edges: pairs of operators, from and to.
        over: share of further instances on top.

    Returns:
        (..., operators); NaN where an operator's rate is unknown (it did no work).

    Raises:
        graphlib.CycleError: the operators form a circle.
    """
    inputs: dict[int, list[int]] = {}
    for source, target in edges:
        inputs.setdefault(target, []).append(source)
    needed, output = instances.astype(np.float64), output_rps.astype(np.float64)
    for at in TopologicalSorter(inputs).static_order():
        if at not in inputs:
            continue
        arriving = sum(output[..., source] for source in inputs[at])
        rate = processing_rps[..., at]
        known = (rate > 0) & (instances[..., at] > 0)
        share = np.where(known, arriving / np.where(known, rate, 1.0), np.nan)
        output[..., at] = output_rps[..., at] * share
        needed[..., at] = whole(share * instances[..., at] * (1 + np.asarray(over)))
    return needed


@dataclass(frozen=True, eq=False)
class Ds2:
    """DS2 of a source and one operator, the executors.

    Attributes:
        name: ds2.
        over: share of further executors on top (`scaling_factor`).
        warm_up: intervals without a decision after a change (`warm_up_time`).
        slack: a decrease by no more executors than these is no change (`consider_change`).
    """

    name: str
    over: Floats | float = 0.0
    warm_up: int = 2
    slack: float = 1.0
    knob: ClassVar[str] = "over"

    @classmethod
    def of(cls, name: str, planning: Planning) -> Ds2:
        """With the values that DS2 ships (activation time 1: the first decision counts)."""
        return cls(name)

    def fresh(self, runs: int) -> Memory:
        """Nothing to carry."""
        return {}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """The optimal number, unless the last change is too fresh or the difference too small."""
        none = np.zeros(view.runs)
        true_rps = view.processed_rps / np.where(view.busy > 0, view.busy, np.nan)
        needed = optimal_parallelism(
            np.stack([none + 1, view.executors], axis=-1), np.stack([none, true_rps], axis=-1),
            np.stack([view.arrival_rps, none], axis=-1), ((0, 1),), self.over,
        )[:, 1]  # fmt: skip
        warming = view.since_change_s < self.warm_up * INTERVAL_S
        small = (needed <= view.target) & (needed >= view.target - self.slack)
        wanted = np.where(warming | small, view.target, needed)
        idle = np.isnan(needed) & np.isfinite(view.processed_rps + view.arrival_rps)
        return memory, within(view, np.where(idle, view.target, wanted), cooldown=warming & (needed > view.target))
