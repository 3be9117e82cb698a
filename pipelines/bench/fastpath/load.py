"""What the fast path is measured with: jobs, samples as they are on `metrics`, forecasters that were really fitted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from configs.settings import Settings, load
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.neural.training import TrainingPlan, fit_network
from pipelines.serve.models.model_set import ModelSet, pack_model
from pipelines.serve.net.wire import Put, encode_frame
from pipelines.stack.isolation import isolated_settings
from pipelines.traces.shipped import find_shipped
from tidecast.messages import MetricSample, encode

CELL = "elb 5min"
HORIZON, LEVELS = 12, (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
STEP_S = 300.0
JOBS = tuple(f"job-{number:02}" for number in range(16))
BEGUN = 2500
"""Windows that a job has before its model serves: enough for a week, which the naive kinds look back."""
BEGIN = 4_000_000
"""First window of every job."""
_PLAN = TrainingPlan(epochs=4)


@cache
def fit_champion(kind: str) -> ModelSet:
    """Fit a model for the measurements, once per process and kind; slow for the networks. Limits torch to one thread.

    Args:
        kind: "gru", fitted to all but the newest 2500 steps of the shipped series "elb 5min"; "blend", which needs no
            fitting; any other name is a GRU from another seed.

    Raises:
        TraceError, SeriesError: the series' file is gone or damaged.
    """
    import torch

    torch.set_num_threads(1)
    task = Task(STEP_S, HORIZON, LEVELS)
    if kind == "blend":
        return pack_model(Blend(task))
    older, _ = find_shipped(CELL).series().split(BEGUN)
    return pack_model(fit_network("gru", task, older, _PLAN, seed=7 if kind == "gru" else 8))


def read_rates() -> list[float]:
    """Read the loads that samples carry: the newest 2500 known steps of the shipped series "elb 5min", in its unit."""
    _, held = find_shipped(CELL).series().split(BEGUN)
    found: list[float] = held.values[np.isfinite(held.values)].tolist()
    return found


class SampleFeed:
    """Encoded samples of jobs, window after window from BEGIN on.

    Each covers a whole window, so that each causes a forecast; its rate is that of `read_rates`, over and over.
    """

    def __init__(self, jobs: Sequence[str] = JOBS) -> None:
        self.jobs, self._rates = tuple(jobs), read_rates()
        self.next = dict.fromkeys(self.jobs, BEGIN)
        """Window of each job's next sample."""

    def take(self, job: str) -> tuple[int, bytes]:
        """Make the sample of the job's next window.

        Returns:
            The window's index since the epoch, and the encoded record.

        Raises:
            KeyError: the feed has no such job.
        """
        window = self.next[job]
        self.next[job] = window + 1
        return window, encode_sample(job, window, self._rates[window % len(self._rates)])

    def frames(self, count: int, jobs: Sequence[str]) -> list[tuple[int, bytes]]:
        """Make `count` puts as they go over the socket, the jobs in turn: (window index, frame)."""
        found = [self.take(jobs[number % len(jobs)]) for number in range(count)]
        return [(window, encode_frame(Put(raw))) for window, raw in found]

    def history(self, windows: int = BEGUN) -> list[tuple[str, bytes]]:
        """Make the samples of the next windows of every job: (job, encoded record), oldest window first."""
        return [(job, self.take(job)[1]) for _ in range(windows) for job in self.jobs]


def encode_sample(job: str, window: int, rate: float) -> bytes:
    """Encode one record of `metrics` as an agent sends it, at a time scale of 300 job seconds per wall second.

    Args:
        job: its name.
        window: index since the epoch of a window of STEP_S job seconds, all of which the record covers.
        rate: records per second, arrived and processed.
    """
    return encode(
        MetricSample(
            job=job, kind="interval", time=window * STEP_S, wall_time=time.time(), time_scale=STEP_S, span_s=STEP_S,
            arrival_rps=rate, processed_rps=rate, lag_records=12, executors=2, pending_executors=0, cores=2,
            watermark_lag_s=1.0, state_rows=1000, mode="observe",
        )
    )  # fmt: skip


def bench_settings(folder: Path, jobs: Sequence[str] = JOBS) -> Settings:
    """Make settings whose state is all in `folder/bench`, and write `folder/contracts/JOB.yaml` for every job.

    Windows are of 5 minutes, the registry is polled every 0.2 s; all else is the default or the environment's.

    Raises:
        SettingsError: the configuration is wrong, or names a broker, registry or Airflow of a person's own.
        OSError: a file cannot be written.
    """
    contracts = folder / "contracts"
    contracts.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        (contracts / f"{job}.yaml").write_text(yaml.safe_dump({"job": job}))
    own = load(
        var=folder, contracts=contracts, training={"step_s": STEP_S, "levels": LEVELS, "horizon": HORIZON},
        serving={"alias_poll_s": 0.2},
    )  # fmt: skip
    return isolated_settings(own, "bench")
