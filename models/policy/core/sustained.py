"""What the executors of a contract sustain, by its first guess or by what its batches have taught.

Planner, policies, twin and admission go by one estimate: the learned batch time, with its spread where certainty is
asked.
"""

from __future__ import annotations

import numpy as np

from configs.contract import Contract
from models.contract.declared import TermsError
from models.contract.promised.derive import SustainedRates, derive_terms, refuse_unsustained
from models.contract.service_rate import CERTAIN
from models.contract.signals import OperatorReading
from models.contract.terms import Terms
from models.policy.core.batch_time import BatchTime
from models.policy.core.capacity import Capacity, parallelism, speed_table
from models.policy.core.rate_spread import slot_quantile


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


def checked_terms(contract: Contract) -> tuple[SustainedRates, Terms]:
    """Return what a contract's executors sustain by its first guess, and the terms that follow.

    Raises:
        TermsError: what is stated does not go together with what follows, or is no running job's.
    """
    rates = sustained_rates(contract)
    refuse_unsustained(contract, rates)
    try:
        terms = derive_terms(contract, rates)
    except ArithmeticError as error:
        raise TermsError(f"{error}: a number is beyond all that can be computed with") from None
    except ValueError as error:
        raise TermsError(str(error)) from None
    if strange := sorted({name for path in terms.paths for name in path.ops} - {contract.job}):
        what = "a running job is one operator, called as the job. Leave ops out."
        raise TermsError(f"paths: {', '.join(strange)}: {what}")
    return rates, terms


def admission_reading(
    contract: Contract, known: BatchTime, scatter: float, executors: int, tasks: int, level: float = CERTAIN
) -> OperatorReading:
    """Return what admission is told of a query: the rate that one of its executors certainly serves while it works.

    Args:
        contract: with cores per executor and scaling.
        known: batch time, as scaling has learned it.
        scatter: of the batches around it (`rate_spread`).
        executors: that run, at least 1.
        tasks: of the heavy stage.
        level: of the quantile that is taken for certain, in (0, 1).
    """
    worth = parallelism(executors, contract.executors.cores, tasks) ** contract.planning.scaling
    return OperatorReading(certain_rps=worth / executors * slot_quantile(known, scatter, level))
