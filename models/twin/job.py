"""What a streaming job is to the twin, and many of them as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.policy.capacity import Floats, speeds

DRAWS = 32
"""Into so many equal parts of their distribution measured times are cut."""


class TwinError(ValueError):
    """What cannot be simulated; the message names the value and the remedy."""


@dataclass(frozen=True)
class Job:
    """A streaming job: batches take `overhead_s + per_record_s * rows / speed(executors)`.

    Attributes:
        overhead_s: seconds of a batch that no executor shortens.
        per_record_s: seconds of one slot per record.
        least, most: bounds of the executors.
        cores: slots per executor.
        tasks: of the heavy stage; more slots than these are worth nothing.
        scaling: exponent of the capacity in slots, at most 1 (measured mapper: 0.83, autoscaling.md C5).
        trigger_s: least seconds from the start of a batch to the next one's.
        batch_rows: most rows of a batch.
        startup_s: measured seconds from the request of an executor to its first task.
        cold_s: seconds that the first batch with a new executor takes longer.
        noise: deviation of the logarithm of a batch's duration.
        restart_s: measured seconds without any work at each change, for engines that restart; empty: nothing restarts.
        latency_target_s: event time to committed result.
    """

    overhead_s: float
    per_record_s: float
    least: int = 1
    most: int = 20
    cores: int = 1
    tasks: int = 64
    scaling: float = 1.0
    trigger_s: float = 1.0
    batch_rows: float = math.inf
    startup_s: tuple[float, ...] = (60.0,)
    cold_s: float = 0.0
    noise: float = 0.0
    restart_s: tuple[float, ...] = ()
    latency_target_s: float = 10.0

    def __post_init__(self) -> None:
        for name, lowest in (
            ("overhead_s", 0.0), ("per_record_s", 1e-12), ("trigger_s", 0.05), ("cold_s", 0.0), ("noise", 0.0),
            ("latency_target_s", 0.1), ("batch_rows", 1.0),
        ):  # fmt: skip
            value = getattr(self, name)
            if not value >= lowest or (math.isinf(value) and name != "batch_rows"):
                raise TwinError(f"{name}={value}: a number of at least {lowest:g} is expected")
        if not 1 <= self.least <= self.most:
            raise TwinError(f"least={self.least}, most={self.most}: 1 <= least <= most is expected")
        if not 0 < self.scaling <= 1:
            raise TwinError(f"scaling={self.scaling}: above 0 and at most 1; a falling capacity curve has no optimum")
        for name in ("startup_s", "restart_s"):
            if any(not (math.isfinite(s) and s >= 0) for s in getattr(self, name)):
                raise TwinError(f"{name}={getattr(self, name)}: finite seconds of at least 0 are expected")
        if not self.startup_s:
            raise TwinError("startup_s=(): at least one measured start-up delay is expected")


class Jobs(NamedTuple):
    """Jobs as arrays, one row per run; fields as of `Job`, `speeds` (runs, N + 1), measured times (runs, DRAWS)."""

    overhead_s: Floats
    per_record_s: Floats
    least: Floats
    most: Floats
    speeds: Floats
    trigger_s: Floats
    batch_rows: Floats
    startup_s: Floats
    cold_s: Floats
    noise: Floats
    restart_s: Floats
    restarts: Floats
    latency_target_s: Floats


def stack(jobs: Sequence[Job]) -> Jobs:
    """One row per run."""
    known = {job: i for i, job in enumerate(dict.fromkeys(jobs))}
    row = np.array([known[job] for job in jobs], np.int64)
    most = max(job.most for job in known)

    def column(of: str) -> Floats:
        return np.array([float(getattr(job, of)) for job in known])[row]

    worth = np.array([speeds(most, job.cores, job.tasks, job.scaling) for job in known])[row]
    startup = np.array([_parts(job.startup_s) for job in known])[row]
    restart = np.array([_parts(job.restart_s or (0.0,)) for job in known])[row]
    return Jobs(
        column("overhead_s"), column("per_record_s"), column("least"), column("most"), worth, column("trigger_s"),
        column("batch_rows"), startup, column("cold_s"), column("noise"), restart,
        np.array([float(bool(job.restart_s)) for job in known])[row], column("latency_target_s"),
    )  # fmt: skip


def _parts(measured: Sequence[float]) -> Floats:
    """The middles of equal parts of a measured distribution."""
    middles: Floats = np.quantile(np.asarray(measured, float), (np.arange(DRAWS) + 0.5) / DRAWS)
    return middles
