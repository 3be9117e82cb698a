"""What an approximate answer may be wrong by, and how that goes on through what is reckoned from it.

Unified batch-stream runtime paper, section on approximate operators; eq. 6.1 around the estimate, as the truth is not
known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from configs.limits import ErrorLimit
from models.replication.approximation.refusal import ApproximationError

Steepest = Callable[[float, float], float]
"""The largest |f'| on [low, high]."""


@dataclass(frozen=True)
class LedgerEntry:
    """One approximate answer.

    Attributes:
        operator: who gives it.
        window: [start, end) in ms, or anything else that tells windows apart.
        estimate: ŷ.
        eps: |ŷ − y| is at most this, in the unit of the estimate.
        pf: but for this probability.
        total: N, records that it was made from.
        parameters: of the sketch or the sample, such as width and depth.
        reference: what a relative limit is a share of: the estimate, or N where the error is one of counts and ranks.
    """

    operator: str
    window: tuple[int, int]
    estimate: float
    eps: float
    pf: float
    total: int
    parameters: Mapping[str, float] = field(default_factory=dict)
    reference: float | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.eps) or self.eps < 0 or not 0 <= self.pf <= 1:
            raise ApproximationError(f"{self.operator}: eps={self.eps}, pf={self.pf}; at least 0, and a probability")

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> LedgerEntry:
        """Return the entry of a row of `tidecast.signed.ledger`."""
        return cls(
            row["operator"], (row["_window_start"], row["_window_end"]), row["estimate"], row["eps"], row["pf"],
            row["n"], row["parameters"], row["reference"],
        )  # fmt: skip

    @property
    def relative(self) -> float:
        """The error as a share of the reference; infinite where there is nothing that it would be a share of."""
        scale = abs(self.estimate if self.reference is None else self.reference)
        return 0.0 if self.eps == 0 else self.eps / scale if scale > 0 else math.inf

    def holds(self, truth: float) -> bool:
        """Say whether the truth is within the bound."""
        return abs(self.estimate - truth) <= self.eps

    def keeps(self, limit: ErrorLimit) -> bool:
        """Say whether the bound is within a contract's limit."""
        if self.pf > limit.pf:
            return False
        return self.eps <= limit.eps_abs if limit.eps_abs is not None else self.relative <= (limit.eps_rel or 0.0)


def linear(name: str, weights: Mapping[str, float], entries: Mapping[str, LedgerEntry]) -> LedgerEntry:
    """Return the entry of Σ a_i·ŷ_i: eps = Σ |a_i|·eps_i, pf = Σ pf_i (union bound).

    Args:
        name: of the operator that adds up.
        weights: a_i by operator, at least one.
        entries: by operator, of one window.

    Raises:
        ApproximationError: there is none, one is unknown, or they are of several windows.
    """
    inputs = _inputs(name, weights, entries)
    return LedgerEntry(
        name, inputs[0].window,
        math.fsum(weights[one.operator] * one.estimate for one in inputs),
        math.fsum(abs(weights[one.operator]) * one.eps for one in inputs),
        min(math.fsum(one.pf for one in inputs), 1.0),
        sum(one.total for one in inputs),
    )  # fmt: skip


def smooth(name: str, function: Callable[[float], float], steepest: Steepest, entry: LedgerEntry) -> LedgerEntry:
    """Return the entry of f(ŷ): eps·max|f'| over [ŷ − 2·eps, ŷ + 2·eps] (eq. 6.1), with the same pf.

    The paper's interval is eps around y; this one holds it wherever y is. By the mean value theorem it is a bound, not
    a first-order one.

    Args:
        name: of the operator that applies f.
        function: f, differentiable there.
        steepest: largest |f'| on an interval.
        entry: of ŷ.
    """
    eps = mean_value_bound(entry.eps, steepest, entry.estimate, 2 * entry.eps)
    return replace(
        entry, operator=name, estimate=function(entry.estimate), eps=eps, parameters={}, reference=None
    )  # fmt: skip


def mean_value_bound(eps: float, steepest: Steepest, centre: float, half_width: float) -> float:
    """Return eps·max|f'| over an interval: by how much f may differ at points that are eps apart in it."""
    if math.isinf(eps):
        return math.inf
    return eps * steepest(centre - half_width, centre + half_width)


def _inputs(name: str, weights: Mapping[str, float], entries: Mapping[str, LedgerEntry]) -> list[LedgerEntry]:
    if unknown := sorted({*weights} - {*entries}):
        raise ApproximationError(f"{name} reads {unknown}: the ledger has {sorted(entries)}")
    inputs = [entries[one] for one in weights]
    if len({one.window for one in inputs}) != 1:
        raise ApproximationError(f"{name} reads windows {sorted({one.window for one in inputs})}: give entries of one")
    return inputs
