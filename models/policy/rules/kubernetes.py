"""Rules of Kubernetes' Horizontal Pod Autoscaler (autoscaling/v2) on utilisation, and on Kafka lag as KEDA uses them.

Sources: kubernetes `pkg/controller/podautoscaler` (replica_calculator.go, horizontal.go) and the defaults of
`HPAScalingRules`; kedacore/keda `pkg/scalers/apache_kafka_scaler.go` (lag capped at partitions times threshold). The
busy share of the executors' slots stands for CPU utilisation; executors are pods, those that start are unready pods.
Between one and n pods KEDA lets the HPA ask: its polling interval and cooldown period act only from and to zero, which
a job that keeps one executor never is. KEDA's threshold has no useful default (10 records); ours is one second of what
one executor sustains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.policy.core import window
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, Rule, View, useful, whole, within

SYNC_S = 15.0
"""Seconds from one decision to the next (`--horizontal-pod-autoscaler-sync-period`)."""
TOLERANCE = 0.1
"""Relative distance of a metric from its target that changes nothing."""
DOWN_WINDOW_S = 300.0
"""Scale-down goes to the highest recommendation of so many seconds."""
UP_FACTOR, UP_PODS = 2.0, 4.0
"""One scale-up at most doubles or adds four pods per 15 s, whichever is more."""


@dataclass(frozen=True, eq=False)
class _PodAutoscaler(Rule):
    def fresh(self, runs: int) -> Memory:
        """No recommendation yet."""
        return window.fresh(runs, "recommended", ("max",))


@dataclass(frozen=True, eq=False)
class Hpa(_PodAutoscaler):
    """`ceil(ready * utilisation / target)`, unless utilisation is within the tolerance of `target`, a busy share."""

    target: Floats | float = 0.7
    knob: ClassVar[str] = "target"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Up at once within the limits, down to the highest recommendation of the window."""
        return stabilised(memory, view, recommended(view, view.busy / self.target))


@dataclass(frozen=True, eq=False)
class Keda(_PodAutoscaler):
    """`ceil(lag / threshold)`: per executor as much may wait as one works off in `seconds`."""

    seconds: Floats | float = 1.0
    knob: ClassVar[str] = "seconds"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Executors whose share of the lag is the threshold, no more than have a partition."""
        threshold = np.maximum(view.capacity.rps(np.ones(view.runs)) * self.seconds, 1e-9)
        partitions = useful(view.capacity)
        share = np.minimum(view.lag_records / threshold, partitions)
        near = np.abs(share - view.target) <= TOLERANCE * view.target
        desired = np.where(near, view.target, whole(share))
        return stabilised(memory, view, np.where(np.isnan(share), np.nan, desired))


def recommended(view: View, ratio: Floats) -> Floats:
    """(runs,) pods that bring utilisation to its target, where `ratio` is utilisation over target; NaN without one.

    On the way up pods that start count as idle (they will take load), on the way down they are left out; a ratio that
    this brings within the tolerance or to the other side changes nothing.
    """
    ready, pods = view.ready, view.ready + view.starting
    rising = ratio > 1
    counted = np.where(rising, ratio * ready / np.maximum(pods, 1.0), ratio)
    near = (np.abs(1 - counted) <= TOLERANCE + 1e-12) | (rising & (counted < 1))
    desired = whole(ratio * ready)
    desired = np.where(rising, np.maximum(desired, view.target), desired)
    return np.where(np.isnan(ratio), np.nan, np.where(near, view.target, desired))


def stabilised(memory: Memory, view: View, desired: Floats) -> tuple[Memory, Choice]:
    """Kubernetes' default behaviour around a recommendation: limited up, delayed down (`recommended` is carried).

    The first recommendation is the number of pods that is found. Without one (NaN) the target stays.
    """
    new = np.isneginf(window.highest(memory, "recommended"))
    noted = np.where(new, np.fmax(desired, view.target), desired)
    memory = window.push(memory, "recommended", noted, view.now_s, DOWN_WINDOW_S)
    limit = np.maximum(UP_FACTOR * view.target, view.target + UP_PODS)
    up, down = desired > view.target, desired < view.target
    lowest = np.minimum(window.highest(memory, "recommended"), view.target)
    wanted = np.where(up, np.minimum(desired, limit), np.where(down, lowest, desired))
    return memory, within(view, wanted, delayed_down=down & (lowest >= view.target))
