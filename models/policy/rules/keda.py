"""Kafka lag per executor, as KEDA's Kafka scaler does it through the Horizontal Pod Autoscaler.

Source: kedacore/keda `pkg/scalers/apache_kafka_scaler.go` (lag capped at partitions times threshold) and kubernetes
`replica_calculator.go` (external metric as an average per pod, tolerance 10 %). Between one and n pods it is the HPA
that asks, every 15 s, and its 300 s window that delays scale-down: KEDA's polling interval (30 s) and cooldown period
(300 s) act only from and to zero, which a job that keeps one executor never is. The threshold has no useful upstream
default (10 records); ours is one second of what one executor sustains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from configs.contract import Planning
from models.policy.core import window
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View
from models.policy.core.within import useful, whole
from models.policy.rules.hpa import stabilised


@dataclass(frozen=True, eq=False)
class Keda:
    """`ceil(lag / threshold)` with a threshold of `seconds` of one executor's capacity.

    Attributes:
        name: keda.
        seconds: of one executor's capacity that may wait per executor.
        tolerance: relative distance of the lag per executor from the threshold that changes nothing.
        down_window_s: scale-down goes to the highest recommendation of so many seconds.
    """

    name: str
    seconds: Floats | float = 1.0
    tolerance: float = 0.1
    down_window_s: float = 300.0
    knob: ClassVar[str] = "seconds"

    @classmethod
    def of(cls, name: str, planning: Planning) -> Keda:
        """With KEDA's and Kubernetes' defaults."""
        return cls(name)

    def fresh(self, runs: int) -> Memory:
        """No recommendation yet."""
        return window.fresh(runs, "recommended", ("max",))

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Executors whose share of the lag is the threshold, no more than have a partition."""
        threshold = np.maximum(view.capacity.rps(np.ones(view.runs)) * self.seconds, 1e-9)
        partitions = useful(view.capacity)
        share = np.minimum(view.lag_records / threshold, partitions)
        near = np.abs(share - view.target) <= self.tolerance * view.target
        desired = np.where(near, view.target, whole(share))
        return stabilised(memory, view, np.where(np.isnan(share), np.nan, desired), self.down_window_s)
