"""The approximate operators of a plan and what is reckoned from them: which change of a size a contract admits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from configs.limits import ErrorLimit
from models.replication.approximation.ledger import LedgerEntry, Steepest, linear, smooth
from models.replication.approximation.refusal import ApproximationError


@dataclass(frozen=True)
class WeightedSum:
    """Σ a_i·y_i of other operators' answers, by name."""

    weights: Mapping[str, float]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what it reads."""
        return tuple(self.weights)

    def entry(self, name: str, entries: Mapping[str, LedgerEntry]) -> LedgerEntry:
        """Return its entry, from those of its inputs."""
        return linear(name, self.weights, entries)


@dataclass(frozen=True)
class SmoothFunction:
    """f(y) of another operator's answer."""

    source: str
    function: Callable[[float], float]
    steepest: Steepest

    @property
    def inputs(self) -> tuple[str, ...]:
        """Name of what it reads."""
        return (self.source,)

    def entry(self, name: str, entries: Mapping[str, LedgerEntry]) -> LedgerEntry:
        """Return its entry, from that of its input."""
        return smooth(name, self.function, self.steepest, entries[self.source])


Derived = Mapping[str, WeightedSum | SmoothFunction]
"""Operators that reckon from the answers of others, by name."""


@dataclass(frozen=True)
class SizeVerdict:
    """Whether a change of a size is admitted; `broken` says which limits it would break, by operator."""

    broken: Mapping[str, str]

    @property
    def admitted(self) -> bool:
        """Whether it breaks none."""
        return not self.broken


def propagate(entries: Mapping[str, LedgerEntry], derived: Derived) -> dict[str, LedgerEntry]:
    """Return the entries of a window, of the approximate operators and of all that reads them.

    Raises:
        ApproximationError: an operator reads one that has no entry, itself, or bears a name that is taken.
    """
    if twice := sorted({*entries} & {*derived}):
        raise ApproximationError(f"operators {twice} are both approximate and derived: give each its own name")
    if unknown := sorted({one for op in derived.values() for one in op.inputs} - {*entries} - {*derived}):
        raise ApproximationError(f"operators {unknown} have no entry: known are {sorted({*entries, *derived})}")
    try:
        order = list(TopologicalSorter({name: op.inputs for name, op in derived.items()}).static_order())
    except CycleError as error:
        raise ApproximationError(f"cycle {' -> '.join(error.args[1])}: an operator reads its own answer") from None
    known = dict(entries)
    for name in order:
        if name in derived:
            known[name] = derived[name].entry(name, known)
    return known


def admit(
    entries: Mapping[str, LedgerEntry], derived: Derived, changed: LedgerEntry, limits: Mapping[str, ErrorLimit]
) -> SizeVerdict:
    """Say whether an operator may have the bound that another size would give it.

    Args:
        entries: of the approximate operators, of one window.
        derived: what reads them.
        changed: the operator's entry with the other size.
        limits: the contract's, by operator; one without is free.

    Raises:
        ApproximationError: the operator is unknown, or the plan has a fault.
    """
    if changed.operator not in entries:
        raise ApproximationError(f"operator {changed.operator!r} has no entry: known are {sorted(entries)}")
    after = propagate({**entries, changed.operator: changed}, derived)
    reached = _downstream(changed.operator, derived)
    broken = {
        name: f"{name}: {_told(after[name])}, the limit is {_limit(limit)}"
        for name, limit in limits.items()
        if name in reached and not after[name].keeps(limit)
    }
    return SizeVerdict(broken)


def _downstream(name: str, derived: Derived) -> set[str]:
    """The operator and all that reads it, however far away."""
    reached = {name}
    while more := {one for one, op in derived.items() if one not in reached and reached & {*op.inputs}}:
        reached |= more
    return reached


def _told(entry: LedgerEntry) -> str:
    return f"error {entry.eps:g} ({entry.relative:.3g} of it) at pf {entry.pf:g}"


def _limit(limit: ErrorLimit) -> str:
    return f"{limit.eps_abs:g} at pf {limit.pf:g}" if limit.eps_abs else f"{limit.eps_rel:g} of it at pf {limit.pf:g}"
