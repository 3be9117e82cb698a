"""What a policy sees of many runs at once, and what it answers: every field has one entry per run.

A live job is a batch of one run; the twin and a backtest show thousands. There is one implementation of each policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Capacity
from models.policy.core.capacity import Floats as Floats
from models.policy.core.capacity import Integers as Integers

GRAIN = 1e-9
"""Share of a number of executors that is taken for a rounding error."""
Memory = dict[str, Floats]
"""What a policy carries from one decision to the next: arrays by name, the run is their first axis."""


class Why(IntFlag):
    """Reasons of a choice, as flags; in lower case they are the codes of a decision record."""

    FORECAST = 1
    """A forecast asked for more than what is observed."""
    BACKLOG = 2
    """More records wait than the batches in flight explain."""
    CEILING = 4
    """Bounds or the task count cut the answer short."""
    COOLDOWN = 8
    """A raise waits because the last change is too recent."""
    CATCH_UP = 16
    """Nothing is taken away while there is a backlog."""
    DELAYED_DOWN = 32
    """A decrease waits: more was needed recently, or the last change is too recent."""
    NO_FORECAST = 64
    """There was no usable forecast for a policy that goes by one."""
    NOT_A_NUMBER = 128
    """The policy's answer was NaN or infinite; the target stays."""
    CLAMPED = 256
    """The policy's answer was out of bounds."""
    UNFAMILIAR = 512
    """The observation lies outside of what the policy was trained on; its fall-back answered."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """The load that is coming, as quantiles.

    Attributes:
        offsets_s: (K,) rising seconds from now; entry k covers the time since entry k - 1 (the first: since now).
        levels: (Q,) quantile levels.
        rps: (runs, K, Q) records/s; NaN without a usable forecast.
    """

    offsets_s: Floats
    levels: tuple[float, ...]
    rps: Floats

    def peak(self, within_s: float, after_s: float = 0.0) -> Floats:
        """Return (runs, Q) the highest records/s of every level between two times from now; NaN without a forecast.

        Args:
            within_s: end, seconds from now.
            after_s: beginning; the forecast's steps count whole, and there is always at least one.
        """
        first = min(int(np.searchsorted(self.offsets_s, after_s + 1e-9)), len(self.offsets_s) - 1)
        last = int(np.searchsorted(self.offsets_s, within_s - 1e-9)) + 1
        highest: Floats = self.rps[:, first : max(last, first + 1)].max(axis=1)
        return highest

    def upper(self, level: float, within_s: float) -> Floats:
        """Return (runs,) the highest records/s within so many seconds at the nearest level; NaN without a forecast."""
        at = int(np.argmin(np.abs(np.array(self.levels) - level)))
        return self.peak(within_s)[:, at]


@dataclass(frozen=True, eq=False)
class View:
    """What a policy sees of (runs,) jobs at one evaluation (a "look"). Times are wall seconds.

    Attributes:
        now_s: the time, the same for all runs; epoch seconds live, seconds since the start in the twin.
        since_s: since the last look.
        arrival_rps: (runs,) produced records/s, mean of the last few seconds.
        lag_records: (runs,) produced and not committed.
        processed_rps: (runs,) committed records/s since the last look.
        busy: (runs,) share, 0 to 1, of the executors' slot time since the last look that was work.
        in_batch: (runs,) share of the time since the last look in which a batch ran.
        batch_s: (runs,) mean duration of the batches that ended since the last look; NaN without any.
        executors, starting, leaving: (runs,) that run (with those leaving), were asked for, are asked to leave.
        target: (runs,) executors last asked for.
        since_change_s: (runs,) since the target last changed.
        least, most: (runs,) bounds of the target.
        capacity: what numbers of executors sustain, as learned so far.
        ahead: the forecast load; None where there is none.
    """

    now_s: float
    since_s: float
    arrival_rps: Floats
    lag_records: Floats
    processed_rps: Floats
    busy: Floats
    in_batch: Floats
    batch_s: Floats
    executors: Floats
    starting: Floats
    leaving: Floats
    target: Floats
    since_change_s: Floats
    least: Floats
    most: Floats
    capacity: Capacity
    ahead: Ahead | None = None

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.target)

    @property
    def ready(self) -> Floats:
        """(runs,) executors that run and stay."""
        return self.executors - self.leaving


@dataclass(frozen=True, eq=False)
class Choice:
    """A policy's answer.

    Attributes:
        target: (runs,) executors to ask for; NaN leaves the target as it is.
        why: (runs,) flags of `Why`.
        observed: (runs,) executors that observed load asks for; NaN where the policy does not say.
        forecast: (runs,) executors that the forecast asks for; NaN without one.
    """

    target: Floats
    why: Integers
    observed: Floats
    forecast: Floats


def chosen(target: Floats, why: Integers | None = None) -> Choice:
    """Create a choice of (runs,) executors with flags (none by default) and NaN for both needs."""
    unsaid = np.full(len(target), np.nan)
    return Choice(target, np.zeros(len(target), np.int64) if why is None else why, unsaid, unsaid)


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
        """Build it from a contract; here, with the vendor's defaults alone. `learned` is ignored."""
        return cls(name)

    def fresh(self, runs: int) -> Memory:
        """Return an empty memory."""
        return {}


def decide(policy: Policy, memory: Memory, view: View) -> tuple[Memory, Choice]:
    """Ask a policy, and keep its answer rounded and within the view's bounds.

    An answer that is NaN or infinite leaves the target as it is and sets `Why.NOT_A_NUMBER`; one out of bounds is
    clipped and sets `Why.CLAMPED`.

    Returns:
        The policy's new memory, and the choice.

    Raises:
        KeyError: the memory is not one that this policy made.
    """
    memory, choice = policy.decide(memory, view)
    none = ~np.isfinite(choice.target)
    asked = np.where(none, view.target, choice.target)
    kept = np.clip(np.rint(asked), view.least, view.most)
    why = choice.why | none * int(Why.NOT_A_NUMBER) | (kept != np.rint(asked)) * int(Why.CLAMPED)
    return memory, Choice(kept, why, choice.observed, choice.forecast)


def flags(**of: Any) -> Integers:
    """Combine boolean masks into (runs,) integers of `Why` flags.

    Args:
        of: per flag, by its name in lower case, a (runs,) mask or a bool.

    Raises:
        KeyError: no flag has that name.
    """
    total: Any = 0
    for name, mask in of.items():
        total = total | np.asarray(mask, bool) * int(Why[name.upper()])
    return np.asarray(total, np.int64)


def whole(executors: Floats) -> Floats:
    """Round (runs,) executors up; an excess of `GRAIN`, a rounding error, does not count as one more."""
    up: Floats = np.ceil(executors - GRAIN * np.maximum(executors, 1.0))
    return up


def useful(capacity: Capacity) -> Floats:
    """Return (runs or 1,) the number of executors beyond which another one would find no task."""
    below = capacity.speeds < capacity.speeds[:, -1:]
    count: Floats = below @ np.ones(below.shape[1])
    return count


def within(view: View, wanted: Floats, **why: Floats | np.ndarray) -> Choice:
    """Create a choice of `wanted` executors cut to the view's bounds; sets `Why.CEILING` where the upper one cut.

    Args:
        view: with the bounds.
        wanted: (runs,) executors; NaN stays NaN.
        why: further flags, (runs,) masks by the names of `Why` in lower case.

    Raises:
        KeyError: no flag has that name.
    """
    kept = np.minimum(np.maximum(wanted, view.least), view.most)
    return chosen(kept, flags(ceiling=wanted > view.most, **why))
