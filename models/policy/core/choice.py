"""A policy's answer for many runs at once, and the reasons that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache
from typing import Any

import numpy as np

from models.policy.core.capacity import Floats, Integers


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
    PROMISE = 1024
    """So much came late that executors are kept for the promise alone."""
    SKEW = 2048
    """One executor is full, and much busier than the mean: more of them alone do not help."""
    TURN = 4096
    """A raise waits for its turn: the last one is too recent, and starts slow each other down or few may be made."""


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


def make_choice(target: Floats, why: Integers | None = None) -> Choice:
    """Create a choice of (runs,) executors with flags (none by default) and NaN for both needs."""
    unsaid = np.full(len(target), np.nan)
    return Choice(target, np.zeros(len(target), np.int64) if why is None else why, unsaid, unsaid)


def why_flags(**of: Any) -> Integers:
    """Combine boolean masks into (runs,) integers, sums of `Why` flags (reasons of a choice).

    Args:
        of: per flag, by its name in lower case such as `backlog`, a (runs,) mask or a bool; at least one.

    Raises:
        KeyError: no flag has that name.
        ValueError: masks of different lengths, or none.
    """
    flags = _flags(tuple(of))
    masks = np.empty((len(of), max(getattr(mask, "size", 1) for mask in of.values())), bool)
    for at, mask in enumerate(of.values()):
        masks[at] = mask
    return flags @ masks


@lru_cache(maxsize=64)
def _flags(names: tuple[str, ...]) -> Integers:
    return np.array([Why[name.upper()] for name in names], np.int64)
