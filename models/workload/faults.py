"""What goes wrong while a workload runs: a plan of faults, drawn beforehand, so that two runs have the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from models.workload.refusal import refuse_unless

FaultKind = Literal["worker kill", "bandwidth cap", "packet loss", "slow node"]
KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)


class Fault(NamedTuple):
    """One fault: seconds since the begin, what, on which target, for how many seconds (0: a kill, which is at once)."""

    at_s: float
    kind: FaultKind
    target: str
    duration_s: float


@dataclass(frozen=True)
class FaultShape:
    """How often what goes wrong.

    Attributes:
        per_hour: faults per hour, exponentially apart.
        kinds: of which, each as often.
        targets: on which, each as often.
        duration_s: mean seconds of those that last; exponential.
    """

    per_hour: float = 0.0
    kinds: tuple[FaultKind, ...] = KINDS
    targets: tuple[str, ...] = ("worker-0",)
    duration_s: float = 60.0

    def __post_init__(self) -> None:
        refuse_unless(self.per_hour >= 0 and self.duration_s > 0, f"{self.per_hour=}, {self.duration_s=}", "0 or more")
        unknown = sorted({*self.kinds} - {*KINDS})
        refuse_unless(bool(self.kinds) and not unknown, f"kinds={self.kinds}", f"some of {KINDS}")
        refuse_unless(bool(self.targets), "targets=()", "at least one")


def draw_faults(shape: FaultShape, seconds: float, rng: np.random.Generator) -> tuple[Fault, ...]:
    """Return the faults of so many seconds, in order."""
    faults: list[Fault] = []
    at_s = 0.0
    while shape.per_hour > 0 and (at_s := at_s + rng.exponential(3600 / shape.per_hour)) < seconds:
        kind, target = shape.kinds[rng.integers(len(shape.kinds))], shape.targets[rng.integers(len(shape.targets))]
        lasts = rng.exponential(shape.duration_s)
        faults.append(Fault(at_s, kind, target, 0.0 if kind == "worker kill" else lasts))
    return tuple(faults)
