"""Limits, prices and orders of relief that a contract may state and its compiled form has alike.

Fields, units and defaults are those of the declarative backpressure contract of the unified batch-stream runtime paper;
where it names no number, the default is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from configs.bounds import Count, Declared, Fraction, Level, NotNegative, Positive

CAREFUL = 0.1
"""Least share of an error's limit that is used: without pressure answers are ten times as good as they must be."""


@dataclass(frozen=True)
class ObjectiveWeights(Declared):
    """Prices of latency, energy, error and goodput in eq. 3.1, each of its dimensionless term."""

    alpha: NotNegative = 1.0
    beta: NotNegative = 0.2
    gamma: NotNegative = 0.5
    eta: NotNegative = 1.0


@dataclass(frozen=True)
class MemoryLimit(Declared):
    """Eq. 3.2: bytes in queues and state together."""

    max_bytes: Positive


@dataclass(frozen=True)
class LagLimit(Declared):
    """Watermark lag in ms, and how fast it may grow, ms/s."""

    max_ms: Positive
    drift_max: NotNegative = 0.0


@dataclass(frozen=True)
class UtilisationLimit(Declared):
    """Largest busy shares."""

    cpu: Level = 0.85
    mem: Level = 0.85
    net: Level = 0.7
    disk: Level = 0.7


@dataclass(frozen=True)
class NetLimit(Declared):
    """Bytes sent per record."""

    bytes_per_record_max: Positive


@dataclass(frozen=True)
class EnergyLimit(Declared):
    """Busy cores, core-seconds per second."""

    max_cores: Positive


@dataclass(frozen=True)
class ErrorLimit(Declared):
    """Largest accepted bound of an approximate operator, in its unit or relative, that fails with probability `pf`."""

    pf: Level
    eps_abs: Positive | None = None
    eps_rel: Positive | None = None

    def __post_init__(self) -> None:
        if (self.eps_abs is None) == (self.eps_rel is None):
            raise ValueError(f"eps_abs={self.eps_abs}, eps_rel={self.eps_rel}: state one of the two")

    def allowed(self, pressure: float, expected: float) -> float:
        """Return the relative error that a size is chosen for: a share of the limit that rises with the pressure.

        Args:
            pressure: θ of the controller, 0 to 1; at least CAREFUL of the limit is used.
            expected: records of a window, above 0; for a limit that is absolute.
        """
        allowed = self.eps_rel if self.eps_rel is not None else (self.eps_abs or 0.0) / expected
        return min(max(pressure, CAREFUL) * allowed, 0.99)


@dataclass(frozen=True)
class RecallLimit(Declared):
    """Least recall of a similarity join."""

    min: Level


@dataclass(frozen=True)
class RecoveryTerms(Declared):
    """Seconds that may be lost or take to recover, share of time for checkpoints, and which records come first."""

    rpo_s: Positive = 60.0
    rto_s: Positive = 300.0
    overhead_max: Level = 0.05
    order: Literal["live_first", "in_order"] = "in_order"


@dataclass(frozen=True)
class ShedTerms(Declared):
    """Whether records may be dropped, and which share at most."""

    allowed: bool = False
    max_fraction: Fraction = 0.0

    def __post_init__(self) -> None:
        if self.max_fraction > 0 and not self.allowed:
            raise ValueError(f"max_fraction={self.max_fraction}: nothing is shed. State allowed: true, or leave it out")


@dataclass(frozen=True)
class Priorities(Declared):
    """Weights of the origins when credits are divided, and the order of relief: the least first."""

    live: Count = 100
    maintenance: Count = 50
    replay: Count = 10

    def __post_init__(self) -> None:
        if not self.live >= self.maintenance >= self.replay:
            said = f"live={self.live}, maintenance={self.maintenance}, replay={self.replay}"
            raise ValueError(f"{said}: relief takes from the replay first, so they must not rise in this order")


@dataclass(frozen=True)
class FairnessTerms(Declared):
    """How tenants share: weights by name (1 where none is stated), and the share that maintenance always has.

    On one shared resource `maxmin` and `log` have the same solution (`tidecast.spark.shares.water_fill`).
    """

    policy: Literal["maxmin", "log"] = "maxmin"
    weights: Mapping[str, Positive] = field(default_factory=dict)
    floor: Level = 0.05
