"""What the executors of a contract sustain, by its first guess or by what its batches have taught."""

from __future__ import annotations

import numpy as np

from configs.contract import Contract
from models.contract.promised.derive import SustainedRates
from models.policy.core.batch_time import BatchTime
from models.policy.core.capacity import Capacity, speed_table


def sustained_rates(contract: Contract, known: BatchTime | None = None, tasks: int | None = None) -> SustainedRates:
    """Return the records/s that the fewest and the most executors of a contract sustain.

    Args:
        contract: with bounds, cores, scaling, and the seconds that a batch should take.
        known: of the batch time; None: the contract's first guess.
        tasks: of the heavy stage; None: as many as all cores.
    """
    bounds, planning = contract.executors, contract.planning
    known = known or BatchTime.guess(planning.overhead_s, planning.per_record_s)
    worth = speed_table(bounds.max, bounds.cores, tasks or bounds.max * bounds.cores, planning.scaling)
    overhead, per_record = np.array([[known.overhead_s] * 2, [known.per_record_s] * 2])
    capacity = Capacity(worth[None], overhead, per_record, contract.batch_s)
    least, most = capacity.sustained_rps(np.array([bounds.min, bounds.max], float)).tolist()
    return SustainedRates(least, most)
