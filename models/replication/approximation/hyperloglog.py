"""HyperLogLog: how many different values came (Flajolet, Fusy, Gandouet and Meunier, AofA 2007).

The register index is the leading bits of a hash, so that a register of precision p − 1 is two of precision p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.replication.approximation.refusal import ApproximationError, refuse_retractions

Hashes = NDArray[np.uint64]
Registers = NDArray[np.int64]


def mix(values: NDArray[np.int64], seed: int) -> Hashes:
    """Return (n,) hashes of 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(2 * seed + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class HyperLogLog:
    """Registers of a window of insertions.

    Attributes:
        registers: (2^p,), the greatest rank of the first 1 behind the p leading bits; 0: none came.
        bits: length of a hash.
    """

    registers: Registers
    bits: int = 64

    @classmethod
    def empty(cls, precision: int, bits: int = 64) -> HyperLogLog:
        """Return a sketch of nothing, with 2^precision registers."""
        return cls(np.zeros(2**precision, dtype=np.int64), bits)

    @property
    def precision(self) -> int:
        """Base 2 logarithm of the number of registers."""
        return len(self.registers).bit_length() - 1

    def add(self, hashes: Hashes, mults: NDArray[np.int64] | None = None) -> HyperLogLog:
        """Return the sketch with values in it, of (n,) hashes below 2^bits.

        Raises:
            ApproximationError: a sign is negative.
        """
        if mults is not None:
            refuse_retractions("HyperLogLog", mults)
        behind = self.bits - self.precision
        places = (hashes >> np.uint64(behind)).astype(np.int64)
        rest = hashes & np.uint64((1 << behind) - 1)
        registers = self.registers.copy()
        np.maximum.at(registers, places, behind + 1 - _length(rest))
        return replace(self, registers=registers)

    def fold(self) -> HyperLogLog:
        """Return the sketch of precision p − 1: M'[j] = max(M[2j] + 1 if M[2j] > 0, 1 if M[2j+1] > 0), else 0.

        The last bit of the index becomes the first one behind it: a 0 there puts each rank one back, a 1 is rank 1.

        Raises:
            ApproximationError: it has one register.
        """
        if self.precision == 0:
            raise ApproximationError("a HyperLogLog of one register cannot be folded: it is as small as it gets")
        even, odd = self.registers[0::2], self.registers[1::2]
        return replace(self, registers=np.where(even > 0, even + 1, np.where(odd > 0, 1, 0)))

    def estimate(self) -> float:
        """Return the number of values: m²/(2·ln 2·Σ), Σ weighing how many registers have each rank (Ertl 2017, alg. 6).

        Unlike the first estimator it has no bias between few and many values.
        """
        m, top = len(self.registers), self.bits - self.precision
        counts = np.bincount(self.registers, minlength=top + 2)
        weighed = m * _tau(1 - counts[top + 1] / m)
        for rank in range(top, 0, -1):
            weighed = (weighed + int(counts[rank])) / 2
        return m * m / (2 * math.log(2) * (weighed + m * _sigma(counts[0] / m)))


def _sigma(x: float) -> float:
    """σ(x) = x + Σ x^(2^k)·2^(k−1): what the empty registers, a share x, weigh."""
    if x >= 1:
        return math.inf
    y, total, before = 1.0, x, math.nan
    while total != before:
        x, before = x * x, total
        total, y = total + x * y, 2 * y
    return total


def _tau(x: float) -> float:
    """τ(x) = (1 − x − Σ (1 − x^(2^−k))²·2^−k)/3: what the full ones, a share 1 − x, weigh."""
    if x <= 0 or x >= 1:
        return 0.0
    y, total, before = 1.0, 1 - x, math.nan
    while total != before:
        x, y, before = math.sqrt(x), y / 2, total
        total -= (1 - x) ** 2 * y
    return total / 3


def _length(values: Hashes) -> Registers:
    """Bits of each value without leading zeros: exact where a float would round up."""
    high, low = (values >> np.uint64(32)).astype(np.float64), (values & np.uint64(0xFFFFFFFF)).astype(np.float64)
    return np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1]).astype(np.int64)
