"""A job's observed load, served in its twin under a contract: what its promise and its executors come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from configs.contract import Contract
from models.policy.core.capacity import Floats
from models.twin.advice.serve import act_each, hear_last_value, late_shares, mean_share
from models.twin.sim.given import Foresight
from models.twin.sim.job import TwinJob


@dataclass(frozen=True, eq=False)
class ContractOutcome:
    """What serving a load under a contract came to, by future (draw of start-ups and batch noise).

    Attributes:
        contract: that was tried.
        late: (futures,) share of the seconds of production that were late, as a promise counts them.
        executor_s: (futures,) executor-seconds, from the request of an executor on.
        asked: most executors that were asked for.
        seconds: of the load.
    """

    contract: Contract
    late: Floats
    executor_s: Floats
    asked: int
    seconds: int

    @property
    def late_share(self) -> float:
        """Share of the seconds of production that were late, mean of the futures."""
        return mean_share(self.late)

    @property
    def kept(self) -> bool:
        """Whether the promise was kept over this load."""
        return self.late_share <= self.contract.error_budget


def try_contract(contract: Contract, twin: TwinJob, arrived: Floats, ahead: Foresight | None = None) -> ContractOutcome:
    """Serve a load under the shipped policy, steered by a contract's promise; equal seeds give equal futures.

    Args:
        contract: with the bounds, cores and latency target that the twin has meanwhile.
        twin: fitted to the job.
        arrived: (T + 1,) records before each second, never falling.
        ahead: from `hear_last_value` of a contract with this one's lead time and hold; None: it is worked out.

    Raises:
        TwinError: too little load for a forecast at this lead time, or `arrived` falls.
    """
    return try_contracts([contract], twin, arrived, ahead or hear_last_value(arrived, contract))[0]


def try_contracts(
    contracts: Sequence[Contract], twin: TwinJob, arrived: Floats, ahead: Foresight
) -> list[ContractOutcome]:
    """Serve a load as `try_contract` does under each of some contracts with the same lead time and hold."""
    jobs = [
        replace(
            twin, least=one.executors.min, most=one.executors.max, cores=one.executors.cores,
            latency_target_s=one.latency_target_s,
        ) for one in contracts
    ]  # fmt: skip
    found = act_each([*zip(jobs, contracts, strict=True)], arrived, ahead)
    return [
        ContractOutcome(
            contract, late_shares(one, arrived), one.executor_s, int(one.targets.max()), len(arrived) - 1
        ) for contract, one in zip(contracts, found, strict=True)
    ]  # fmt: skip
