"""The workload generator: signed, timed records of a table and of the stream that goes on from it.

Unified batch-stream runtime paper, workload generator. One seed sequence with a child per component: what is changed
in one component leaves what the others draw as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from models.workload.disorder import DisorderShape, draw_delays, draw_retractions
from models.workload.faults import Fault, FaultShape, draw_faults
from models.workload.keys import KeyShape, draw_keys
from models.workload.rates import RateShape, draw_counts
from models.workload.refusal import refuse_unless

Ints = NDArray[np.int64]
COMPONENTS = ("noise", "counts", "arrivals", "ranks", "drift", "hot", "values", "delays", "retractions", "faults")
"""In the order of their children; a new one comes last."""


@dataclass(frozen=True)
class ValueShape:
    """Values: whole numbers, log-normal around a median, at most `most`."""

    median: float = 100.0
    sigma: float = 1.0
    most: int = 100_000

    def __post_init__(self) -> None:
        right = self.median > 0 and self.sigma >= 0 and self.most >= 0
        refuse_unless(right, str(self), "a median above 0, the others 0 or more")


@dataclass(frozen=True)
class WorkloadShape:
    """What a workload looks like.

    Attributes:
        seconds: how long records come; retractions may come later.
        batch_s: t_0, seconds since the begin: what comes before is the table's, the rest the stream's.
        begin_ms: begin, ms since the epoch.
        step_s: seconds in which the rate is constant.
        rate, keys, values, disorder, faults: of the components.
    """

    seconds: float = 600.0
    batch_s: float = 0.0
    begin_ms: int = 1_700_000_000_000
    step_s: float = 1.0
    rate: RateShape = field(default_factory=RateShape)
    keys: KeyShape = field(default_factory=KeyShape)
    values: ValueShape = field(default_factory=ValueShape)
    disorder: DisorderShape = field(default_factory=DisorderShape)
    faults: FaultShape = field(default_factory=FaultShape)

    def __post_init__(self) -> None:
        refuse_unless(self.seconds > 0 and self.step_s > 0, f"{self.seconds=}, {self.step_s=}", "more than 0 s")
        refuse_unless(self.batch_s >= 0, f"batch_s={self.batch_s}", "0 s or more")


@dataclass(frozen=True, eq=False)
class SignedRecords:
    """Records in order of arrival; all arrays are (N,).

    Attributes:
        key: whole numbers from 0 on.
        value: whole numbers from 0 on.
        t_e: event time, ms since the epoch.
        t_i: ingestion time, likewise; not falling.
        mult: +1 inserts, -1 takes back what was inserted with the same key, value and event time.
    """

    key: Ints
    value: Ints
    t_e: Ints
    t_i: Ints
    mult: Ints

    def __len__(self) -> int:
        return len(self.key)

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> SignedRecords:
        """Return some of them, by a mask or by places."""
        return SignedRecords(*(column[chosen] for column in self._columns))

    def rows(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield (key, value, t_e, t_i, mult), one after the other."""
        return zip(*(column.tolist() for column in self._columns), strict=True)

    @property
    def _columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.key, self.value, self.t_e, self.t_i, self.mult


@dataclass(frozen=True, eq=False)
class Workload:
    """A workload that was drawn: all its records, where the stream begins (ms since the epoch), and its faults."""

    records: SignedRecords
    stream_ms: int
    faults: tuple[Fault, ...]

    @property
    def batch(self) -> SignedRecords:
        """The table's part: what was there at t_0."""
        return self.records.part(self.records.t_i < self.stream_ms)

    @property
    def stream(self) -> SignedRecords:
        """The stream's part, with the retractions of what the table has."""
        return self.records.part(self.records.t_i >= self.stream_ms)


def draw_workload(shape: WorkloadShape, seed: int) -> Workload:
    """Draw a workload; equal shapes and seeds give equal ones."""
    children = np.random.SeedSequence(seed).spawn(len(COMPONENTS))
    rng = {name: np.random.default_rng(child) for name, child in zip(COMPONENTS, children, strict=True)}
    starts = shape.step_s * np.arange(int(np.ceil(shape.seconds / shape.step_s)), dtype=np.float64)
    counts = draw_counts(shape.rate, starts, shape.step_s, rng["noise"], rng["counts"])
    n = int(counts.sum())
    came_s = np.sort(np.repeat(starts, counts) + shape.step_s * rng["arrivals"].random(n))
    came_s = came_s[came_s < shape.seconds]
    n = len(came_s)
    key = draw_keys(shape.keys, came_s, rng["ranks"], rng["drift"], rng["hot"])
    drawn = shape.values.median * rng["values"].lognormal(0.0, shape.values.sigma, n)
    value = np.minimum(np.rint(drawn), shape.values.most).astype(np.int64)
    t_i = shape.begin_ms + np.floor(came_s * 1000).astype(np.int64)
    t_e = t_i - draw_delays(shape.disorder, n, rng["delays"])
    inserted = SignedRecords(key, value, t_e, t_i, np.ones(n, dtype=np.int64))
    records = _with_retractions(inserted, *draw_retractions(shape.disorder, n, rng["retractions"]))
    stream_ms = shape.begin_ms + round(shape.batch_s * 1000)
    return Workload(records, stream_ms, draw_faults(shape.faults, shape.seconds, rng["faults"]))


def _with_retractions(inserted: SignedRecords, taken: NDArray[np.bool_], after: Ints) -> SignedRecords:
    gone = inserted.part(taken)
    t_i = np.concatenate([inserted.t_i, gone.t_i + after[taken]])
    both = SignedRecords(
        np.concatenate([inserted.key, gone.key]), np.concatenate([inserted.value, gone.value]),
        np.concatenate([inserted.t_e, gone.t_e]), t_i, np.concatenate([inserted.mult, -gone.mult]),
    )  # fmt: skip
    return both.part(np.argsort(t_i, kind="stable"))
