"""What every policy implements, and how it is asked: its answer is rounded and kept within the bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, Why, make_choice, why_flags
from models.policy.core.view import Memory, View


class Policy(Protocol):
    """What every policy implements: pure functions of memory and view.

    Its parameters are its fields, each a number or an array with one value per run.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def fresh(self, runs: int) -> Memory:
        """Return what it carries before its first decision: arrays by name, first axis the runs."""

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return what it carries afterwards, and its choice; `memory` is not changed."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Base of policies built from a contract; one that carries something overrides `fresh`.

    Attributes:
        name: in the catalogue.
    """

    name: str
    knob: ClassVar[str]
    """The name of the field that a backtest sweeps."""

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it from a contract; here, with its usual settings alone. `learned` is ignored."""
        return cls(name)

    def fresh(self, runs: int) -> Memory:
        """Return an empty memory."""
        return {}

    def raise_towards(self, view: View, wanted: Floats) -> Floats:
        """Return (runs,) executors to ask for now on the way up to (runs,) wanted; here, all of them."""
        return wanted


def decide(policy: Policy, memory: Memory, view: View) -> tuple[Memory, Choice]:
    """Ask a policy for its choice, rounded to whole executors and kept within the view's bounds `least` and `most`.

    An answer that is NaN or infinite leaves the target as it is and sets `Why.NOT_A_NUMBER`; one out of bounds is
    clipped and sets `Why.CLAMPED`.

    Returns:
        The policy's new memory, and the choice: (runs,) whole executors as floats, reasons (flags of `Why`), and needs.

    Raises:
        KeyError: the memory is not one that this policy made.
    """
    memory, choice = policy.decide(memory, view)
    none = ~np.isfinite(choice.target)
    asked = np.where(none, view.target, choice.target)
    whole = np.rint(asked)
    kept = np.minimum(np.maximum(whole, view.least), view.most)
    why = choice.why | none * int(Why.NOT_A_NUMBER) | (kept != whole) * int(Why.CLAMPED)
    return memory, Choice(kept, why, choice.observed, choice.forecast)


def clipped_choice(view: View, wanted: Floats, **why: Floats | np.ndarray) -> Choice:
    """Create a choice of `wanted` executors cut to the view's bounds; sets `Why.CEILING` where the upper one cut.

    Args:
        view: with the bounds.
        wanted: (runs,) executors; NaN stays NaN.
        why: further flags, (runs,) masks by the names of `Why` in lower case.

    Raises:
        KeyError: no flag has that name.
    """
    kept = np.minimum(np.maximum(wanted, view.least), view.most)
    return make_choice(kept, why_flags(ceiling=wanted > view.most, **why))
