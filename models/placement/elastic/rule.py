"""Instances of one operator by how busy they are. Md-Stream paper, Algorithm 4, eq. 11, 12 and 18, repaired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MOST_LOAD, LEAST_LOAD, TARGET_LOAD = 0.875, 0.30, 0.7
"""Orl_max and Orl_min of the paper, and the load of an instance that a change aims at."""
CALM, COOL = 3, 2
"""Windows that ask for fewer before there are fewer, and windows after a change without another one."""
SKEWED = 1.5
WINDOW_S, CATCH_UP_S = 60.0, 300.0


class ScaleMove(StrEnum):
    """What is done."""

    OUT = "out"
    IN = "in"
    HOLD = "hold"


class OperatorWindow(NamedTuple):
    """What was seen of an operator in a window.

    Attributes:
        instances: that it has.
        arrival_rps: records/s sent to it, from the producers' side.
        load: busy share of its busiest instance (Orl).
        service_rps: records/s of an instance while it is busy; NaN where nothing was worked on.
        backlog: records that wait for it.
        slow: whether the job's latency is over its limit.
    """

    instances: int
    arrival_rps: float
    load: float
    service_rps: float
    backlog: float
    slow: bool

    @property
    def offered_rps(self) -> float:
        """What is to be worked on: arrivals, and what waits within CATCH_UP_S (RT)."""
        return self.arrival_rps + self.backlog / CATCH_UP_S


class Hysteresis(NamedTuple):
    """What is carried from window to window: changes have to be asked for several times, and wait for each other.

    Attributes:
        low: windows in turn that asked for fewer.
        cooling: windows that are left without a change.
    """

    low: int = 0
    cooling: int = 0


class ScalingStep(NamedTuple):
    """Instances from now on, and why."""

    instances: int
    move: ScaleMove


@dataclass(frozen=True)
class Elasticity:
    """The rule.

    The paper adds and takes away by eq. 18, and only while the job is slow, so that idle instances would stay for ever.

    Attributes:
        least: instances.
        most: likewise: partitions of what it reads, and of its state.
    """

    least: int = 1
    most: int = 1 << 30

    def decide(self, state: Hysteresis, seen: OperatorWindow) -> tuple[Hysteresis, ScalingStep]:
        """Return what is carried on, and the instances: more where one is too busy while the job is slow, else fewer.

        More by eq. 18 with a damping of the instances there are: Newton's iteration for rate ÷ (0.7 x service), which
        does not overshoot. Fewer, at most by half, after three calm windows without a backlog.
        """
        known = math.isfinite(seen.service_rps) and seen.service_rps > 0
        idle = not seen.slow and seen.load < LEAST_LOAD and seen.backlog <= WINDOW_S * seen.arrival_rps
        cooling = state.cooling > 0
        state = Hysteresis(state.low + 1 if idle else 0, max(state.cooling - 1, 0))
        if cooling or not (known or seen.arrival_rps == 0):
            return state, ScalingStep(seen.instances, ScaleMove.HOLD)
        if known and seen.slow and self._is_busy(seen) and seen.instances < self.most:
            after = min(self.most, seen.instances + max(1, scale_step(seen)))
            return Hysteresis(0, COOL), ScalingStep(after, ScaleMove.OUT)
        if state.low >= CALM and (fewer := self._fewer(seen)) < seen.instances:
            return Hysteresis(0, COOL), ScalingStep(fewer, ScaleMove.IN)
        return state, ScalingStep(seen.instances, ScaleMove.HOLD)

    @staticmethod
    def _is_busy(seen: OperatorWindow) -> bool:
        return seen.load > MOST_LOAD or seen.offered_rps > MOST_LOAD * seen.instances * seen.service_rps

    def _fewer(self, seen: OperatorWindow) -> int:
        needed = math.ceil(seen.offered_rps / (TARGET_LOAD * seen.service_rps) - 1e-9) if seen.arrival_rps else 0
        return max(self.least, needed, seen.instances - max(1, seen.instances // 2))


@dataclass(frozen=True)
class PrintedElasticity:
    """Algorithm 4 in the paper's order, to be compared with: eq. 18 with the rate that was worked on as RAP.

    That is the rate which comes, as long as no record waits: nothing changes then. Only a slow job's instances do, idle
    ones too. The damping is the number of instances, as the paper gives none.
    """

    def decide(self, state: Hysteresis, seen: OperatorWindow) -> tuple[Hysteresis, ScalingStep]:
        """Return the state as it was, and the instances: at least one."""
        out = not LEAST_LOAD <= seen.load <= MOST_LOAD
        if not (seen.slow and out and seen.offered_rps > 0 and math.isfinite(seen.service_rps)):
            return state, ScalingStep(seen.instances, ScaleMove.HOLD)
        worked_rps = min(seen.load * seen.instances * seen.service_rps, seen.offered_rps)
        step = round_half_away(seen.instances * (seen.offered_rps - worked_rps) / seen.offered_rps)
        return state, ScalingStep(seen.instances + step, ScaleMove.OUT if step else ScaleMove.HOLD)


def instance_loads(service_ms: Sequence[float], records: Sequence[float], window_s: float) -> list[float]:
    """Return the busy share of each instance, mean service time x records ÷ window (eq. 11).

    Args:
        service_ms: mean of each instance, ms.
        records: that it worked on.
        window_s: length.
    """
    return [ms / 1000 * many / window_s for ms, many in zip(service_ms, records, strict=True)]


def is_skewed(loads: Sequence[float]) -> bool:
    """Whether the busiest instance is so much busier than the mean that more instances alone do not help."""
    return max(loads) > SKEWED * sum(loads) / len(loads)


def step_share(seen: OperatorWindow, target: float = TARGET_LOAD) -> float:
    """Return (RT - RAP) ÷ RT of eq. 18; RAP: rate at which instances have the target load.

    At a target of 1 that rate is their capacity: then the sign is wrong while they keep up, however busy they are.
    """
    if seen.offered_rps <= 0:
        return -math.inf
    return (seen.offered_rps - target * seen.instances * seen.service_rps) / seen.offered_rps


def scale_step(seen: OperatorWindow) -> int:
    """Return the instances by which eq. 18 changes them, to the nearest whole number, halves away from 0.

    The damping is the number of instances.
    """
    return round_half_away(seen.instances * max(step_share(seen), -1e6))


def round_half_away(value: float) -> int:
    """Return the nearest whole number, halves away from 0."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
