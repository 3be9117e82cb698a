"""Random numbers that are the same on every platform and in compiled code: SplitMix64 (Steele, Lea and Flood 2014)."""

from __future__ import annotations

import hashlib
from typing import Any

import numba
import numpy as np


def seeded(seed: int, turn: int) -> Any:
    """Return the (1,) state of a generator for a turn of a seed."""
    told = hashlib.sha256(f"{seed} {turn}".encode()).digest()[:8]
    return np.frombuffer(told, np.uint64).copy()


@numba.njit(cache=True)
def draw(state: Any) -> Any:
    """Return the next 64 bits; the state moves on."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@numba.njit(cache=True)
def draw_below(state: Any, bound: int) -> Any:
    """Return a whole number from 0 to below a bound that is far below 2**64."""
    return np.int64(draw(state) % np.uint64(bound))
