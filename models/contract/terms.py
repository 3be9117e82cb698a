"""The contract under which live records and a replay share a job: limits, prices and boxes of its controls.

Fields, units and defaults are those of the declarative backpressure contract of the unified batch-stream runtime paper,
which prices latency, energy, error and goodput (eq. 3.1) under limits of memory (eq. 3.2) and path latency (eq. 3.3).
Where the paper names no number, the default is ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from configs.bounds import Count, Declared, Level, Name, NotNegative, Positive, Whole
from configs.limits import (
    EnergyLimit,
    ErrorLimit,
    FairnessTerms,
    LagLimit,
    MemoryLimit,
    NetLimit,
    ObjectiveWeights,
    Priorities,
    RecallLimit,
    RecoveryTerms,
    ShedTerms,
    UtilisationLimit,
)
from models.contract.declared import build, plain

LIVE: Final = "live"
REPLAY: Final = "replay"
"""Origins of a record, and classes of a path."""


@dataclass(frozen=True)
class ObjectiveScales(Declared):
    """Divisors that make the terms of eq. 3.1 dimensionless: ms, cores, relative error, records/s."""

    latency_ms: Positive
    energy_cores: Positive
    error_rel: Positive
    goodput_rps: Positive


@dataclass(frozen=True)
class PathLimit(Declared):
    """Eq. 3.3: a quantile of the latency over the operators of a path is at most `max_ms`; `kind` is live or replay."""

    ops: Annotated[tuple[Name, ...], Field(min_length=1)]
    quantile: Level
    max_ms: Positive
    kind: Annotated[Literal["live", "replay"], Field(alias="class")] = LIVE

    @property
    def name(self) -> str:
        """Class, operators and quantile, by which signals and trace name the path."""
        return f"{self.kind} {'>'.join(self.ops)} {self.quantile:g}"

    @property
    def share_s(self) -> float:
        """Seconds of the limit that fall to each operator."""
        return self.max_ms / 1000 / len(self.ops)


@dataclass(frozen=True)
class ControlBox(Declared):
    """Bounds of a control in its own unit, and the share of its range that it may move per interval."""

    min: NotNegative
    max: Positive
    slew: Annotated[float, Field(gt=0, le=1)] = 0.1

    def __post_init__(self) -> None:
        if self.min > self.max:
            raise ValueError(f"min={self.min:g} is above max={self.max:g}; swap them")


@dataclass(frozen=True)
class ControlBoxes(Declared):
    """Boxes by control: records/s of the replay and of live records, and theta, the share of the error limits in use.

    Without a box for live records none of them is ever held back.
    """

    replay_rps: ControlBox
    live_rps: ControlBox | None = None
    theta: ControlBox = ControlBox(0.0, 1.0, 0.1)

    def __post_init__(self) -> None:
        if self.theta.max > 1:
            raise ValueError(f"theta.max={self.theta.max:g}: it is a share of the error limits, at most 1")


@dataclass(frozen=True)
class Terms(Declared):
    """A compiled contract; `seed` is for all sampling."""

    name: Name
    scales: ObjectiveScales
    paths: Annotated[tuple[PathLimit, ...], Field(min_length=1)]
    controls: ControlBoxes
    version: Whole = 1
    interval_s: Count = 10
    seed: Whole = 0
    weights: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    memory: MemoryLimit | None = None
    lag: LagLimit | None = None
    util_max: UtilisationLimit = field(default_factory=UtilisationLimit)
    net: NetLimit | None = None
    energy: EnergyLimit | None = None
    error: Mapping[str, ErrorLimit] = field(default_factory=dict)
    recall: Mapping[str, RecallLimit] = field(default_factory=dict)
    recovery: RecoveryTerms = field(default_factory=RecoveryTerms)
    shed: ShedTerms = field(default_factory=ShedTerms)
    priorities: Priorities = field(default_factory=Priorities)
    fairness: FairnessTerms = field(default_factory=FairnessTerms)

    def __post_init__(self) -> None:
        names = [path.name for path in self.paths]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"paths: {twice[0]!r} is limited twice. Keep the stricter limit")
        if not any(path.kind == LIVE for path in self.paths):
            raise ValueError("paths: none has the class live. State a latency limit of the live records")

    @property
    def text(self) -> str:
        """The contract as JSON with sorted keys; equal contracts have the same text."""
        return json.dumps(plain(self), sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `text`, which every line of a trace carries."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def compile_terms(data: Mapping[str, Any]) -> Terms:
    """Compile a contract from a plain mapping, such as YAML or JSON hold.

    Raises:
        TermsError: a field is unknown, missing or out of its range; the message names it, its value and the remedy.
    """
    return build(Terms, data)
