"""The count-min sketch: how often each key came, never too few (Cormode and Muthukrishnan, J. Algorithms 55, 2005)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.replication.approximation.refusal import ApproximationError
from tidecast.signed.approximate.bounds import count_min_bound

Ints = NDArray[np.int64]
Hash = Callable[[Ints], Ints]
"""From keys, whole numbers ≥ 0, (n,), to hashes ≥ 0, (n,)."""
_PRIME = 2**31 - 1


def draw_hashes(depth: int, rng: np.random.Generator) -> tuple[Hash, ...]:
    """Draw pairwise independent hashes, (a·x + b) mod (2^31 − 1), of keys below 2^31 − 1 (Carter and Wegman 1979)."""

    def one(a: int, b: int) -> Hash:
        return lambda keys: (a * keys + b) % _PRIME

    return tuple(one(int(rng.integers(1, _PRIME)), int(rng.integers(_PRIME))) for _ in range(depth))


@dataclass(frozen=True, eq=False)
class CountMin:
    """Counters of a window; valid while no key's net is below 0.

    Attributes:
        rows: (depth, width) counters; key x is counted in column h_i(x) mod width of each row i.
        hashes: h_i, one per row.
        total: N, the sum of all nets.
    """

    rows: Ints
    hashes: tuple[Hash, ...]
    total: int = 0

    @classmethod
    def empty(cls, width: int, hashes: Sequence[Hash]) -> CountMin:
        """Return a sketch of nothing.

        Raises:
            ApproximationError: the width is no power of 2, or there is no hash.
        """
        if width < 1 or width & (width - 1) or not hashes:
            raise ApproximationError(f"width={width}, depth={len(hashes)}: a power of 2 and at least 1 are expected")
        return cls(np.zeros((len(hashes), width), dtype=np.int64), tuple(hashes))

    @property
    def width(self) -> int:
        """Counters per row."""
        return int(self.rows.shape[1])

    @property
    def bound(self) -> tuple[float, float]:
        """How much too high an estimate may be, in records, and with which probability it is higher."""
        eps, pf = count_min_bound(self.width, len(self.hashes))
        return eps * self.total, pf

    def add(self, keys: Ints, mults: Ints | None = None) -> CountMin:
        """Return the sketch with records in it: (n,) keys, and their signs, all +1 if None."""
        counts = np.ones(len(keys), dtype=np.int64) if mults is None else mults
        rows = self.rows.copy()
        for row, hashed in zip(rows, self.hashes, strict=True):
            np.add.at(row, hashed(keys) % self.width, counts)
        return replace(self, rows=rows, total=self.total + int(counts.sum()))

    def estimate(self, keys: Ints) -> Ints:
        """Return (n,) estimates: the least counter of each key."""
        columns = np.array([hashed(keys) % self.width for hashed in self.hashes])
        return np.take_along_axis(self.rows, columns, axis=1).min(axis=0)

    def fold(self) -> CountMin:
        """Return the sketch of half the width: cell j + w/2 is added to cell j, as if it had been built so.

        Raises:
            ApproximationError: it has one column.
        """
        if self.width == 1:
            raise ApproximationError("a count-min sketch of width 1 cannot be folded: it is as small as it gets")
        half = self.width // 2
        return replace(self, rows=self.rows[:, :half] + self.rows[:, half:])
