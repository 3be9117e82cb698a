"""The jobs of a fleet: their contracts, what they were before, and a champion for each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import yaml

from configs.contract import Contract, Executors
from configs.sections import Kafka, Training
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.bench.fleet.told_job import CEILING, MEAN_RPS, SWING_S
from pipelines.kafka.publisher import Publisher
from pipelines.serve.models.model_set import pack_model
from tidecast.messages import MetricSample

STEP_S = 60.0
"""Job seconds of a step, so that a forecast is due every minute."""
PAST_STEPS = 120
"""Steps of history that a job begins with."""
_PATIENT = {"linger_ms": 20}


def contract_of(number: int) -> Contract:
    """Return the contract of a job by its number."""
    return Contract(job=f"job-{number:04d}", executors=Executors(max=CEILING))


def begun_s(number: int, jobs: int, now: float) -> float:
    """Return the wall time at which a job's load is lowest: jobs' loads rise one after the other."""
    return now + SWING_S * number / jobs


def write_contracts(folder: Path, jobs: int) -> None:
    """Write the contract of each job to a new folder.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    for number in range(jobs):
        contract = contract_of(number)
        text = yaml.safe_dump({"job": contract.job, "executors": {"max": contract.executors.max}})
        (folder / f"{contract.job}.yaml").write_text(text)


def write_champions(folder: Path, jobs: int, training: Training) -> None:
    """Make a blend the champion of each job, in a new folder (`pipelines.bench.fastpath.champions`).

    Raises:
        OSError: a file cannot be written.
    """
    blend = Blend(Task(STEP_S, training.horizon, tuple(training.levels)))
    add_version(folder, "1", pack_model(blend))
    promote_version(folder, [contract_of(number).job for number in range(jobs)], "1")


def send_past(kafka: Kafka, jobs: int, now: float) -> None:
    """Publish PAST_STEPS steps of each job's load before `now` (epoch s), a record a step, as history is sent.

    `now` is that of `begun_s` for the live load, too.

    Raises:
        BrokerError: the broker does not take them.
    """
    chance = np.random.default_rng(7)
    with closing(Publisher(kafka, **_PATIENT)) as publisher:
        for step in range(PAST_STEPS, 0, -1):
            at = (now // STEP_S - step) * STEP_S
            for number, rate in enumerate(_rates(jobs, at, now, chance)):
                job = contract_of(number).job
                sample = MetricSample(job, "interval", at, at + STEP_S, span_s=STEP_S, arrival_rps=rate)
                publisher.send("metrics", job, sample)


def _rates(jobs: int, at: float, now: float, chance: np.random.Generator) -> Sequence[float]:
    lowest = np.array([begun_s(number, jobs, now) for number in range(jobs)])
    means = MEAN_RPS * (1 - 0.7 * np.cos(2 * np.pi * (at - lowest) / SWING_S))
    found: list[float] = (chance.poisson(means * STEP_S) / STEP_S).round(3).tolist()
    return found
