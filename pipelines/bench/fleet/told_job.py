"""A job of which there is nothing but what its agent would say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from configs.contract import Contract
from tidecast.messages import MetricSample

SWING_S = 1800.0
"""Seconds in which the load goes up and down once."""
MEAN_RPS, CEILING = 400.0, 8


class ToldJob:
    """Tells of a job second by second, as an agent does: a second of metrics each second, a batch every other.

    Its load goes up and down every SWING_S, far more often than a day's does, with the noise of single arrivals; its
    executors follow decisions after the contract's lead.
    """

    def __init__(self, contract: Contract, seed: int, begun_s: float) -> None:
        """Tell of the job of a contract, whose load is lowest at the wall time `begun_s` (epoch seconds)."""
        self._contract, self._chance, self._begun = contract, np.random.default_rng(seed), begun_s
        self._batch, self._coming, self._until = 0, [(0.0, 1)], 0.0

    def follow(self, executors: int, now: float) -> None:
        """Let the executors be so many once the contract's lead has passed since `now`."""
        if executors != self._coming[-1][1]:
            self._coming.append((now + self._contract.planning.lead_s, executors))

    def second(self, now: float) -> list[MetricSample]:
        """Return what its agent says at the wall time `now`: an interval since the last one, and perhaps a batch."""
        planning, asked = self._contract.planning, self._coming[-1][1]
        mean = MEAN_RPS * (1 - 0.7 * math.cos(2 * math.pi * (now - self._begun) / SWING_S))
        arrived = float(self._chance.poisson(mean))
        executors = next(many for at, many in reversed(self._coming) if at <= now)
        common: dict[str, Any] = {
            "job": self._contract.job, "wall_time": round(now, 3), "lag_records": int(2 * arrived),
            "executors": executors, "pending_executors": max(asked - executors, 0), "cores": executors,
            "task_ceiling": CEILING, "mode": "act",
        }  # fmt: skip
        since = self._until or round(now - 1, 3)
        self._until = round(now, 3)
        span_s = round(self._until - since, 3)
        samples = [MetricSample(kind="interval", time=since, arrival_rps=arrived, span_s=span_s, **common)]
        self._batch += 1
        if self._batch % 2 == 0:
            rows = int(2 * mean)
            work_s = planning.per_record_s * rows / executors * self._chance.normal(1, 0.03)
            took = round(planning.overhead_s + work_s, 3)
            samples.append(MetricSample(
                kind="batch", time=round(now - took, 3), span_s=took, processed_rps=round(rows / took, 3),
                batch_id=self._batch, batch_rows=rows, batch_s=took, stage_s=round(0.7 * took, 3), state_rows=50_000,
                latency_p50_s=round(took + 0.9, 3), latency_p95_s=round(took + 1.9, 3),
                latency_max_s=round(took + 2.1, 3), watermark_lag_s=round(took + 2.5, 3), **self._times(work_s),
                **common,
            ))  # fmt: skip
        return samples

    def _times(self, work_s: float) -> dict[str, Any]:
        """Where a batch's time went; its tasks are asked for their spread with every fifth."""
        parts = {"planning_s": 0.06, "offsets_s": 0.03, "log_s": 0.2, "state_commit_s": 0.3, "run_s": 2 * work_s,
                 "gc_s": 0.05 * work_s, "sink_wait_s": 0.2 * work_s}  # fmt: skip
        spread = {"task_median_s": work_s / 4, "task_max_s": work_s / 3} if self._batch % 10 == 0 else {}
        noisy = {name: round(part * self._chance.normal(1, 0.1), 3) for name, part in (parts | spread).items()}
        return {**noisy, "spilled_bytes": 0}
