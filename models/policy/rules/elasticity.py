"""Instances of operators by how busy they are. Md-Stream paper, Algorithm 4, eq. 11, 12 and 18, repaired.

All is of numbers, or of arrays with one value per operator (or run of one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, round_up

MOST_LOAD, LEAST_LOAD, TARGET_LOAD = 0.875, 0.30, 0.7
"""Orl_max and Orl_min of the paper, and the load of an instance that a change aims at."""
CALM, COOL = 3, 2
"""Windows that ask for fewer before there are fewer, and windows after a change without another one."""
SKEWED = 1.5
WINDOW_S, CATCH_UP_S, SETTLED_S = 60.0, 300.0, 700.0
"""Seconds of a window, within which what waits is to be worked on, and before the first change (the paper's stable
time)."""


class OperatorWindow(NamedTuple):
    """What was seen of operators in a window.

    Attributes:
        instances: that each has.
        arrival_rps: records/s sent to it, from the producers' side.
        load: busy share of its busiest instance (Orl).
        service_rps: records/s of an instance while it is busy; NaN where nothing was worked on.
        backlog: records that wait for it.
        slow: whether the job's latency is over its limit.
    """

    instances: Any
    arrival_rps: Any
    load: Any
    service_rps: Any
    backlog: Any
    slow: Any

    @property
    def offered_rps(self) -> Any:
        """What is to be worked on: arrivals, and what waits within CATCH_UP_S (RT)."""
        return self.arrival_rps + self.backlog / CATCH_UP_S


class Hysteresis(NamedTuple):
    """What is carried from window to window: changes have to be asked for several times, and wait for each other.

    Attributes:
        low: windows in turn that asked for fewer.
        cooling: windows that are left without a change.
    """

    low: Any = 0
    cooling: Any = 0


@dataclass(frozen=True, eq=False)
class Elasticity:
    """The rule.

    The paper adds and takes away by eq. 18, and only while the job is slow, so that idle instances would stay for ever.

    Attributes:
        least: instances.
        most: likewise: partitions of what it reads, and of its state.
        target: load of an instance that a change aims at.
    """

    least: Floats | int = 1
    most: Floats | int = 1 << 30
    target: Floats | float = TARGET_LOAD

    def decide(self, state: Hysteresis, seen: OperatorWindow) -> tuple[Hysteresis, Floats]:
        """Return what is carried on, and the instances: more where one is too busy while the job is slow, else fewer.

        More by eq. 18 with a damping of the instances there are: Newton's iteration for rate ÷ (target x service),
        which does not overshoot. Fewer, at most by half, after three calm windows without a backlog.
        """
        instances = np.asarray(seen.instances, float)
        known, slow = _is_known(seen), np.asarray(seen.slow, bool)
        idle = ~slow & (seen.load < LEAST_LOAD) & (seen.backlog <= WINDOW_S * np.asarray(seen.arrival_rps))
        low = np.where(idle, np.asarray(state.low) + 1, 0)
        able = (np.asarray(state.cooling) <= 0) & (known | (np.asarray(seen.arrival_rps) == 0))
        more = np.minimum(self.most, instances + np.maximum(1, scale_step(seen, self.target)))
        fewer = self._fewer(seen, instances)
        out = able & known & slow & _is_busy(seen) & (instances < self.most)
        back = able & ~out & (low >= CALM) & (fewer < instances)
        changed, cooling = out | back, np.maximum(np.asarray(state.cooling) - 1, 0)
        after = np.where(out, more, np.where(back, fewer, instances))
        return Hysteresis(np.where(changed, 0, low), np.where(changed, COOL, cooling)), after

    def _fewer(self, seen: OperatorWindow, instances: Floats) -> Floats:
        able = self.target * np.where(_is_known(seen), seen.service_rps, 1.0)
        needed = np.where(np.asarray(seen.arrival_rps) > 0, round_up(seen.offered_rps / able), 0.0)
        half = instances - np.maximum(1, instances // 2)
        return np.maximum(np.maximum(self.least, needed), half)


@dataclass(frozen=True)
class PrintedElasticity:
    """Algorithm 4 in the paper's order, to be compared with: eq. 18 with the rate that was worked on as RAP.

    That is the rate which comes, as long as no record waits: nothing changes then. Only a slow job's instances do, idle
    ones too. The damping is the number of instances, as the paper gives none.
    """

    def decide(self, state: Hysteresis, seen: OperatorWindow) -> tuple[Hysteresis, Floats]:
        """Return the state as it was, and the instances: at least one."""
        load, offered = np.asarray(seen.load), np.asarray(seen.offered_rps)
        acts = np.asarray(seen.slow, bool) & ~((load >= LEAST_LOAD) & (load <= MOST_LOAD)) & (offered > 0)
        acts &= np.isfinite(seen.service_rps)
        worked = np.minimum(load * seen.instances * np.where(acts, seen.service_rps, 0.0), offered)
        step = round_half_away(seen.instances * (offered - worked) / np.where(offered > 0, offered, 1.0))
        return state, seen.instances + np.where(acts, step, 0.0)


def instance_loads(service_ms: Sequence[float], records: Sequence[float], window_s: float) -> list[float]:
    """Return the busy share of each instance, mean service time x records ÷ window (eq. 11).

    Args:
        service_ms: mean of each instance, ms.
        records: that it worked on.
        window_s: length.
    """
    return [ms / 1000 * many / window_s for ms, many in zip(service_ms, records, strict=True)]


def is_skewed(busiest: Any, mean: Any) -> Any:
    """Whether the busiest instance is so much busier than the mean of all that more instances alone do not help."""
    return np.asarray(busiest) > SKEWED * np.asarray(mean)


def step_share(seen: OperatorWindow, target: Floats | float = TARGET_LOAD) -> Floats:
    """Return (RT - RAP) ÷ RT of eq. 18; RAP: rate at which instances have the target load; -inf where RT is 0.

    At a target of 1 that rate is their capacity: then the sign is wrong while they keep up, however busy they are.
    """
    offered = np.asarray(seen.offered_rps, float)
    at_target = target * np.asarray(seen.instances) * seen.service_rps
    return np.where(offered > 0, (offered - at_target) / np.maximum(offered, 1e-9), -np.inf)


def scale_step(seen: OperatorWindow, target: Floats | float = TARGET_LOAD) -> Floats:
    """Return the instances by which eq. 18 changes them, to the nearest whole number, halves away from 0.

    The damping is the number of instances.
    """
    return round_half_away(np.asarray(seen.instances) * np.maximum(step_share(seen, target), -1e6))


def round_half_away(value: Floats | float) -> Floats:
    """Return the nearest whole numbers, halves away from 0."""
    return np.copysign(np.floor(np.abs(value) + 0.5), value)


def _is_known(seen: OperatorWindow) -> Any:
    return np.isfinite(seen.service_rps) & (np.asarray(seen.service_rps) > 0)


def _is_busy(seen: OperatorWindow) -> Any:
    most = MOST_LOAD * np.asarray(seen.instances) * seen.service_rps
    return (np.asarray(seen.load) > MOST_LOAD) | (seen.offered_rps > most)
