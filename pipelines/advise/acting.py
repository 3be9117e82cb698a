"""What acting would have come to over all that was recorded of a job, beside what it came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from models.policy.core.capacity import Floats
from models.twin.advice.serve import act, hear_last_value, looks_of
from models.twin.calibration.replayed import replay_recording
from pipelines.advise.measured import MeasuredJob

SEEDS = 3
STEP_S = 0.25
"""Seconds between two looks at the twin; a batch that begins and ends between them is taken to end at the later one."""


@dataclass(frozen=True, eq=False)
class Served:
    """How a load was served.

    Attributes:
        late_s: seconds of production that came out late.
        executor_h: executor-hours.
    """

    late_s: float
    executor_h: float


@dataclass(frozen=True, eq=False)
class Acting:
    """A job's recorded load, served in three ways.

    Attributes:
        measured: as its own messages say.
        repeated: by its twin with the executors that it had; where it differs from `measured`, the twin is wrong.
        acting: by its twin under `mpc`, steered by the promise.
        seconds: recorded.
        targets: (T,) executors asked for in each second when acting.
    """

    measured: Served
    repeated: Served
    acting: Served
    seconds: int
    targets: Floats


def compare_acting(seen: MeasuredJob) -> Acting:
    """Serve all recorded load of a job in its twin: with the executors that it had, and by acting.

    Raises:
        TwinError: too little load for a forecast at this lead time.
    """
    contract, ahead = seen.contract, hear_last_value(seen.arrived, seen.contract)
    found = act(seen.twin, contract, seen.arrived, ahead)
    seconds, every = len(seen.executors), looks_of(contract).every_s
    late_s = float(found.violation.mean()) * seconds
    return Acting(
        Served(seen.late_s, seen.executor_hours), repeat_recorded(seen),
        Served(late_s, float(found.executor_s.mean()) / 3600), seconds,
        np.repeat(found.targets.mean(axis=1), every)[:seconds],
    )  # fmt: skip


def acting_to_json(acting: Acting) -> dict[str, Any]:
    """Convert to JSON values: `recorded_s`, and `late_s` and `executor_h` of `measured`, `repeated` and `acting`."""
    ways = {name: asdict(getattr(acting, name)) for name in ("measured", "repeated", "acting")}
    return {"recorded_s": acting.seconds, **ways}


def repeat_recorded(seen: MeasuredJob) -> Served:
    """Serve all recorded load of a job in its twin with the executors of each second, which are there at once."""
    there = np.maximum(np.rint(seen.executors), 1.0)
    job = replace(seen.twin, least=1, most=int(max(there.max(), seen.twin.most)), startup_s=(0.0,))
    at = np.flatnonzero(np.diff(there)) + 1
    curves = replay_recording(
        job, seen.arrived, at.astype(float), there[at].astype(np.int64), int(there[0]), np.arange(SEEDS), step_s=STEP_S
    )
    target_s = seen.contract.latency_target_s
    # Seconds whose records still wait at the end are late by the age that they have by then, as when acting.
    waits_s = np.where(np.diff(seen.arrived) > 0, len(seen.arrived) - 1.0 - np.arange(len(seen.arrived) - 1), 0.0)
    took_s = np.where(np.isnan(curves.latency_s), waits_s, curves.latency_s)
    late = (took_s > target_s).sum(axis=1)
    return Served(float(late.mean()), float(curves.executors.sum(axis=1).mean()) / 3600)
