"""Says when the most executors that a job may have are too few for its load, as soon as that can be known."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Capacity
from models.policy.core.view import nearest_level
from models.policy.received.observation import Observation


@dataclass(frozen=True)
class Shortage:
    """A load that the most executors do not sustain.

    Attributes:
        rps: records/s that arrive now, or the highest median that is forecast.
        begins_s: wall seconds from now within which the load passes what they sustain; 0 if it has.
        most, most_rps: the most executors, and records/s that they sustain.
        needed: executors that would sustain it; None where the job has too few tasks for any number to do so.
    """

    rps: float
    begins_s: float
    most: int
    most_rps: float
    needed: int | None


def find_shortage(seen: Observation, contract: Contract, capacity: Capacity) -> Shortage | None:
    """Find a load, now or ahead, above what the most executors sustain; None if they sustain all that is known.

    A record waits for the batch in flight to end and for its own: batches of half of the latency target still keep the
    promise, and carry more than the shorter ones that are planned with.

    Args:
        seen: the job as observed; of a forecast the level nearest to the median is read. In logs of before nothing is
            looked for, so that they replay.
        contract: of the job.
        capacity: of this one job, as learned so far.
    """
    if seen.lead_s is None:
        return None
    capacity = replace(capacity, batch_s=max(contract.batch_s, contract.latency_target_s / 2))
    bounds, most_rps = contract.executors, float(capacity.sustained_rps(np.array([contract.executors.max]))[0])
    rps, begins_s = seen.arrival_rps, 0.0
    if not rps > most_rps and seen.ahead is not None:
        median = nearest_level(seen.ahead.levels, 0.5)
        coming = [row[median] for row in seen.ahead.rps]
        above = [at for at, one in zip(seen.ahead.offsets_s, coming, strict=True) if one > most_rps]
        if above:
            rps, begins_s = max(one for one in coming if one > most_rps), above[0]
    if not rps > most_rps:
        return None
    # Tasks per wave that sustain it; with so many waves each has `tasks / waves` of them.
    try:
        slots = (rps / float(capacity.per_slot_rps[0])) ** (1 / contract.planning.scaling) * (1 - 1e-9)
    except OverflowError:  # where executors hardly help each other, and the load is far above one's
        slots = math.inf
    waves = math.floor(seen.tasks / slots)
    needed = math.ceil(math.ceil(seen.tasks / waves) / bounds.cores) if waves else None
    return Shortage(rps, begins_s, bounds.max, most_rps, needed)


def describe_shortage(shortage: Shortage, seen: Observation) -> str:
    """Say it in words, such as "at most 4 executors carry 310 rec/s; 380 come, too many by 18:10: 5 needed".

    The moment is in the job's time, UTC.
    """
    when = "arrive"
    if shortage.begins_s > 0:
        when = time.strftime("come, too many by %H:%M", time.gmtime(seen.job_s + shortage.begins_s * seen.scale))
    remedy = f"{shortage.needed} needed"
    if shortage.needed is None:
        remedy = f"{seen.tasks} tasks are too few for any number of executors"
    return f"at most {shortage.most} executors carry {shortage.most_rps:.0f} rec/s; {shortage.rps:.0f} {when}: {remedy}"
