"""How large a sketch or a sample has to be: from the contract's limit and the pressure, at a window's start.

Within a window a size can only fall, because what was never kept cannot be had back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from configs.limits import ErrorLimit
from models.replication.approximation.ledger import LedgerEntry
from models.replication.approximation.refusal import ApproximationError
from models.replication.approximation.samples import proportion_error, proportion_size, sampling_rate
from tidecast.signed.approximate.bounds import (
    MOST_K,
    MOST_PRECISION,
    around,
    count_min_bound,
    count_min_size,
    hyperloglog_error,
    hyperloglog_precision,
    kll_rank_error,
    kll_size,
    sampled_sum_error,
)

Kind = Literal["count_min", "hyperloglog", "kll", "reservoir", "bernoulli"]
RETRACTING: Final[frozenset[Kind]] = frozenset({"count_min", "bernoulli"})
"""What retractions may enter: counters that add up, and a sample that takes a fact and its retraction alike."""
_MOST = {"count_min": 2**22, "hyperloglog": MOST_PRECISION, "kll": MOST_K, "reservoir": 2**20, "bernoulli": 1.0}


@dataclass(frozen=True)
class Size:
    """A size of a sketch or a sample.

    Attributes:
        kind: what it is.
        amount: what may change: width, precision, k, or rate.
        pf: probability that its bound fails; of a count-min sketch it makes the depth.
    """

    kind: Kind
    amount: float
    pf: float

    @property
    def parameters(self) -> Mapping[str, float]:
        """As the ledger has them."""
        if self.kind == "count_min":
            return {"width": self.amount, "depth": count_min_size(0.5, self.pf)[1]}
        return {{"hyperloglog": "precision", "bernoulli": "rate"}.get(self.kind, "k"): self.amount}

    def entry(self, operator: str, window: tuple[int, int], estimate: float, total: int) -> LedgerEntry:
        """Return the ledger's entry of an answer, or of one that is expected, with this size.

        Errors of a count-min sketch (counts), of KLL (ranks) and of a reservoir (counts of a share) are of N records.

        Args:
            operator: who gives it.
            window: of which window.
            estimate: the answer.
            total: N.
        """
        eps, reference, pf = self._error(estimate, total)
        return LedgerEntry(operator, window, estimate, eps, pf, total, self.parameters, reference)

    def _error(self, estimate: float, total: int) -> tuple[float, float | None, float]:
        if self.kind == "count_min":
            share, pf = count_min_bound(int(self.amount), int(self.parameters["depth"]))
            return share * total, total, pf
        if self.kind == "hyperloglog":
            relative = hyperloglog_error(int(self.amount), self.pf)
            return (around(estimate, relative) if relative < 1 else math.inf), None, self.pf
        if self.kind == "kll":
            return kll_rank_error(int(self.amount), self.pf) * total, total, self.pf
        if self.kind == "reservoir":
            return proportion_error(int(min(self.amount, total) or 1), self.pf, total or 1) * total, total, self.pf
        return sampled_sum_error(estimate, self.amount, 1.0, self.pf), None, self.pf


def refuse_changelog(kind: Kind, operator: str) -> None:
    """Refuse a kind of sketch for a change log with retractions, when a plan is made.

    Raises:
        ApproximationError: it cannot take a value out.
    """
    if kind not in RETRACTING:
        raise ApproximationError(
            f"{operator}: a {kind} sketch cannot take a value out, and its input has retractions. Use one of"
            f" {sorted(RETRACTING)}, or final results without lateness"
        )


def size_at_start(kind: Kind, limit: ErrorLimit, pressure: float, expected: float) -> Size:
    """Return the size for a whole window: the least one that keeps a share of the limit that rises with the pressure.

    Args:
        kind: of sketch or sample.
        limit: the contract's.
        pressure: θ of the controller, 0 to 1: the share of the limits that may be used; at least a tenth is, and more
            where even the largest size cannot keep so little.
        expected: records (of HyperLogLog: values) that the window will have, above 0.

    Raises:
        ApproximationError: no size keeps the limit, or nothing is expected.
    """
    if not expected > 0:
        raise ApproximationError(f"expected={expected} records of a window: give more than 0")
    amount = _least(kind, limit.allowed(pressure, expected), limit.pf, expected)
    size = Size(kind, _MOST[kind] if amount is None else amount, limit.pf)
    if size.entry("", (0, 0), expected, int(expected)).keeps(limit):
        return size
    raise ApproximationError(f"{kind} cannot keep {limit} of {expected:g} records: count exactly, or allow more")


def shrink(size: Size, amount: float) -> Size:
    """Return a smaller size, which may be taken at any time.

    Raises:
        ApproximationError: it is larger; or no half, quarter, ... of a count-min sketch's width.
    """
    if amount > size.amount:
        raise ApproximationError(f"{size.kind} from {size.amount:g} to {amount:g}: grow at a window's start only")
    if size.kind == "count_min" and amount not in (2**power for power in range(int(size.amount).bit_length())):
        raise ApproximationError(f"count-min from width {size.amount:g} to {amount:g}: fold it to a power of 2")
    return Size(size.kind, amount, size.pf)


def _least(kind: Kind, eps: float, pf: float, expected: float) -> float | None:
    """The least amount with a relative error of at most eps; None where there is none."""
    try:
        least: Mapping[Kind, Callable[[], float]] = {
            "count_min": lambda: count_min_size(eps, pf)[0],
            "hyperloglog": lambda: hyperloglog_precision(eps / (1 + eps), pf),
            "kll": lambda: kll_size(eps, pf),
            "reservoir": lambda: min(proportion_size(eps, pf), max(math.ceil(expected), 1)),
            "bernoulli": lambda: _least_rate(eps, pf, expected),
        }
        amount = least[kind]()
    except ValueError:
        return None
    return amount if amount <= _MOST[kind] else None


def _least_rate(eps: float, pf: float, expected: float) -> float:
    """The rate at which the bound of a count, which is wider than its normal distribution's, is as small as that."""
    low, high = sampling_rate(eps, pf, expected), 1.0
    for _ in range(40):
        middle = (low + high) / 2
        kept = sampled_sum_error(expected, middle, 1.0, pf) <= eps * expected
        low, high = (low, middle) if kept else (middle, high)
    return high
