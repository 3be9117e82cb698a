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
from models.policy.core.capacity import Floats, round_up
from models.policy.core.choice import Choice
from models.policy.core.policy import Rule, clipped_choice
from models.policy.core.view import Memory, View

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
    """The Horizontal Pod Autoscaler on utilisation: `ceil(ready * utilisation / target)` beyond the tolerance.

    Attributes:
        target: busy share to aim for, a number or one per run.
    """

    target: Floats | float = 0.7
    knob: ClassVar[str] = "target"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Raise at once, to at most double or 4 more; lower to the highest recommendation of the last 300 s.

        Where `busy` (share of the executors' time) is within 10 % of its target nothing changes.

        Returns:
            The new memory, and the choice: (runs,) executors within the bounds, NaN where the busy share is unknown.

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        return stabilise(memory, view, recommend_pods(view, view.busy / self.target))


@dataclass(frozen=True, eq=False)
class Keda(_PodAutoscaler):
    """KEDA's Kafka scaler: `ceil(lag / threshold)`, limited and delayed as the Horizontal Pod Autoscaler does.

    Attributes:
        seconds: the threshold is what one executor works off in so many; a number or one per run.
    """

    seconds: Floats | float = 1.0
    knob: ClassVar[str] = "seconds"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Choose executors so that each has at most the threshold of waiting records, and at most one per partition.

        The threshold is what one executor processes in `seconds`; within 10 % of the target nothing changes. A raise
        goes to at most double or 4 more, a decrease to the highest recommendation of the last 300 s.

        Returns:
            The new memory, and the choice: (runs,) executors within the view's bounds, NaN where the lag is unknown.

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        threshold = np.maximum(view.capacity.sustained_rps(np.ones(view.runs)) * self.seconds, 1e-9)
        partitions = view.capacity.useful_executors
        share = np.minimum(view.lag_records / threshold, partitions)
        near = np.abs(share - view.target) <= TOLERANCE * view.target
        desired = np.where(near, view.target, round_up(share))
        return stabilise(memory, view, np.where(np.isnan(share), np.nan, desired))


def recommend_pods(view: View, ratio: Floats) -> Floats:
    """Return (runs,) pods (executors) that bring utilisation to its target, as Kubernetes does; NaN where unknown.

    On the way up starting pods count as idle, on the way down they are left out. A ratio that this brings within the
    tolerance (0.1) of 1 or to the other side of 1 keeps the target.

    Args:
        view: of the runs; executors that run, start and leave, and the target are read.
        ratio: (runs,) utilisation over its target.
    """
    ready, pods = view.ready, view.ready + view.starting
    rising = ratio > 1
    counted = np.where(rising, ratio * ready / np.maximum(pods, 1.0), ratio)
    near = (np.abs(1 - counted) <= TOLERANCE + 1e-12) | (rising & (counted < 1))
    desired = round_up(ratio * ready)
    desired = np.where(rising, np.maximum(desired, view.target), desired)
    return np.where(np.isnan(ratio), np.nan, np.where(near, view.target, desired))


def stabilise(memory: Memory, view: View, desired: Floats) -> tuple[Memory, Choice]:
    """Apply Kubernetes' default behaviour to a recommendation: limited on the way up, delayed on the way down.

    One raise at most doubles the pods (executors) or adds four, whichever is more; a decrease goes to the highest
    recommendation of the last 300 s, the number of pods found at the first call among them.

    Args:
        memory: with the window "recommended".
        view: of the runs; its target and bounds are read.
        desired: (runs,) pods; NaN keeps no recommendation, and makes the choice NaN (`decide` keeps the target).

    Returns:
        The new memory, and the choice: (runs,) pods within the view's bounds, and reasons (flags).

    Raises:
        KeyError: the memory holds no such window.
    """
    new = np.isneginf(window.highest(memory, "recommended"))
    noted = np.where(new, np.fmax(desired, view.target), desired)
    memory = window.push_values(memory, "recommended", noted, view.now_s, DOWN_WINDOW_S)
    limit = np.maximum(UP_FACTOR * view.target, view.target + UP_PODS)
    up, down = desired > view.target, desired < view.target
    lowest = np.minimum(window.highest(memory, "recommended"), view.target)
    wanted = np.where(up, np.minimum(desired, limit), np.where(down, lowest, desired))
    return memory, clipped_choice(view, wanted, delayed_down=down & (lowest >= view.target))
