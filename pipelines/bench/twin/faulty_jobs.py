"""Jobs that are sound but for one fault, drawn by a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from configs.contract import Contract, Executors, Planning
from models.policy.core.capacity import Floats
from models.twin.sim.arrivals import draw_arrivals
from models.twin.sim.job import TwinJob, stack

FAULTS = {
    "few_partitions": "partitions", "short_trigger": "trigger", "slow_sink": "sink", "skew": "skew",
    "low_ceiling": "ceiling", "memory": "memory",
}  # fmt: skip
"""Kinds of fault, and the kind of advice that mends each."""
SOUND = "sound"
SECONDS = 7200
MOST_BATCHES = 3
"""A batch takes at most the records that so many batches at the peak have (`maxOffsetsPerTrigger`)."""


@dataclass(frozen=True, eq=False)
class FaultyJob:
    """A drawn job, and what its agent would see of its tasks.

    Attributes:
        job: the twin that runs.
        contract: of the job.
        arrived: (T + 1,) records before each second.
        tasks: of its heaviest stage, as Spark counts them.
        skew: slowest task ÷ median task.
        gc_share, spill_share, wait_share: of its tasks' time.
        disk_bps: bytes per second at which its disks take what is spilled.
    """

    job: TwinJob
    contract: Contract
    arrived: Floats
    tasks: int
    skew: float
    gc_share: float
    spill_share: float
    wait_share: float
    disk_bps: float


def draw_job(fault: str, seed: int) -> FaultyJob:
    """Draw a sound job and its load, and give it a fault of drawn severity; the same for the same seed.

    Args:
        fault: one of `FAULTS`, or `SOUND`.
        seed: any.

    Raises:
        KeyError: no such fault.
    """
    chance = np.random.default_rng([seed, 0 if fault == SOUND else 1 + list(FAULTS).index(fault)])
    sound, peak = _sound(chance)
    if fault == SOUND:
        return sound
    return _FAULTY[fault](sound, peak, chance)


def _sound(chance: np.random.Generator) -> tuple[FaultyJob, int]:
    """A job that its peak takes so many executors of, within its bounds."""
    overhead_s, peak, cores = chance.uniform(0.3, 0.8), int(chance.integers(4, 9)), int(chance.integers(1, 3))
    batch_s = round(overhead_s / chance.uniform(0.05, 0.12), 1)
    most, lead_s = round(peak * chance.uniform(1.5, 2.0)), chance.uniform(15.0, 60.0)
    job = TwinJob(
        overhead_s=overhead_s, per_record_s=float(np.exp(chance.uniform(np.log(0.002), np.log(0.02)))),
        most=most, cores=cores, tasks=most * cores * int(chance.integers(1, 3)), scaling=chance.uniform(0.85, 1.0),
        trigger_s=batch_s, startup_s=tuple(lead_s * chance.uniform(0.85, 1.15, 8)), cold_s=chance.uniform(1.0, 3.0),
        noise=chance.uniform(0.05, 0.12), latency_target_s=batch_s * chance.uniform(3.0, 4.0),
    )  # fmt: skip
    contract = Contract(
        job="drawn", latency_target_s=job.latency_target_s, executors=Executors(min=1, max=most, cores=cores),
        error_budget=float(np.exp(chance.uniform(np.log(0.005), np.log(0.05)))),
        planning=Planning(
            lead_s=lead_s, hold_s=2 * batch_s, batch_s=batch_s, catch_up_s=60.0, scale_down_delay_s=120.0,
            overhead_s=overhead_s * chance.uniform(0.9, 1.3), per_record_s=job.per_record_s * chance.uniform(0.7, 1.5),
            scaling=job.scaling,
        ),
    )  # fmt: skip
    carried = float(stack([job]).capacity(batch_s).sustained_rps(np.array([float(peak)]))[0])
    job = replace(job, batch_rows=MOST_BATCHES * carried * batch_s)
    drawn = FaultyJob(
        job, contract, _load(0.9 * carried, chance), job.tasks, chance.uniform(1.1, 1.5), chance.uniform(0.01, 0.05),
        0.0, chance.uniform(0.02, 0.12), chance.uniform(60e6, 200e6),
    )  # fmt: skip
    return drawn, peak


def _load(peak_rps: float, chance: np.random.Generator) -> Floats:
    """Two hours of two or three waves, with a slow wander and some bursts, that peak at so many records/s."""
    seconds = np.arange(SECONDS)
    waves, low = chance.integers(2, 4), chance.uniform(0.3, 0.6)
    rate = low + (1 - low) * 0.5 * (1 - np.cos(2 * np.pi * (seconds * waves / SECONDS + chance.uniform())))
    wander = np.interp(seconds, np.arange(0, SECONDS + 120, 120), chance.normal(0, 0.06, SECONDS // 120 + 1))
    rate *= np.exp(wander)
    for _ in range(int(chance.integers(1, 4))):
        begin, length = chance.integers(600, SECONDS - 600), chance.integers(120, 300)
        rate += chance.uniform(0.1, 0.25) * np.clip((length / 2 - np.abs(seconds - begin)) / 40, 0, 1)
    return draw_arrivals(rate * peak_rps / np.quantile(rate, 0.995), int(chance.integers(1 << 30)))


def _few_partitions(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    tasks = max(round(chance.uniform(0.4, 0.65) * peak * sound.job.cores), 1)
    return replace(sound, job=replace(sound.job, tasks=tasks), tasks=tasks)


def _short_trigger(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    trigger_s = round(sound.job.overhead_s * chance.uniform(1.2, 2.0), 1)
    planning = sound.contract.planning.model_copy(update={"batch_s": trigger_s})
    contract = sound.contract.model_copy(update={"planning": planning})
    return replace(sound, job=replace(sound.job, trigger_s=trigger_s), contract=contract)


def _slow_sink(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    factor = chance.uniform(1.5, 2.5)
    slow = replace(sound.job, per_record_s=sound.job.per_record_s * factor)
    return replace(sound, job=slow, wait_share=(factor - 1 + sound.wait_share) / factor)


def _skew(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    """One task holds so much that the stage is worth this many tasks; the job runs as if it had no more."""
    worth = max(round(chance.uniform(0.4, 0.65) * peak * sound.job.cores), 2)
    return replace(sound, job=replace(sound.job, tasks=worth), skew=(sound.tasks - 1) / (worth - 1))


def _low_ceiling(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    most = max(int(chance.uniform(0.5, 0.7) * peak), 1)
    bounds = sound.contract.executors.model_copy(update={"max": most})
    contract = sound.contract.model_copy(update={"executors": bounds})
    return replace(sound, job=replace(sound.job, most=most), contract=contract)


def _memory(sound: FaultyJob, peak: int, chance: np.random.Generator) -> FaultyJob:
    """Garbage collection and spilling each take a share of the tasks' time; the rest of it is as long as before."""
    gc, spill = chance.uniform(0.2, 0.45), chance.uniform(0.0, 0.25)
    slow = replace(sound.job, per_record_s=sound.job.per_record_s / (1 - gc - spill))
    return replace(sound, job=slow, gc_share=gc, spill_share=spill)


_FAULTY = {
    "few_partitions": _few_partitions, "short_trigger": _short_trigger, "slow_sink": _slow_sink, "skew": _skew,
    "low_ceiling": _low_ceiling, "memory": _memory,
}  # fmt: skip
