"""One evaluation of a job: from what is remembered of it to what its policy sees, and to what that decides."""

from __future__ import annotations

import math
from dataclasses import replace

from configs.contract import Contract
from configs.policies import BY_PEAKS, LISTENERS
from models.policy.core import carried
from models.policy.core.batches import looked
from models.policy.core.view import Policy
from models.policy.live.memory import Memory
from models.policy.live.observation import Observation
from models.policy.live.plan import Plan, plan
from models.policy.received.outlook import Moment, outlook
from models.policy.received.peak_calibrator import PeakCalibrator

FIRST_LOOK_S = 1.0
NEVER_S = 1e6
"""Since the last change, where there was none."""
RESYNC_S, RESYNC_LEADS = 20.0, 1.5
"""A target that the executors have not reached after this long is given up for what is there: seconds, or lead times
where these are longer, because given up earlier a request would be withdrawn before it can come true."""


def evaluate(
    memory: Memory,
    now: float,
    contract: Contract,
    policy: Policy,
    version: str | None = None,
    stand_in: str = "",
    calibrator: PeakCalibrator | None = None,
) -> tuple[Memory, Observation | None, Plan | None]:
    """One evaluation at wall time `now`; no plan before the job has shown its executors or when metrics are too old.

    The policy's own memory goes on from its last decision, and begins afresh after another policy's. `version` is that
    of a learned policy's agent; `stand_in` says why this policy decides in the place of the one that was asked for;
    `calibrator` are those of the forecast that is held.
    """
    if memory.executors is None or memory.metric_at is None or not memory.arrivals:
        return memory, None, None
    if now - memory.metric_at > contract.planning.metrics_age_s:
        return memory, None, None
    memory = _resynced(memory, now, contract)
    batches, batch_s = looked(memory.batches, memory.lag_records)
    seen = _observation(replace(memory, batches=batches), now, batch_s, contract, policy, calibrator)
    seen = replace(seen, version=version, stand_in=stand_in)
    after, made = plan(seen, contract, policy)
    changed = now if made.executors != memory.target else memory.changed_at
    memory = replace(
        memory, target=made.executors, changed_at=changed, batches=batches, looked_at=now,
        policy=policy.name, carried=carried.dump(after),
    )  # fmt: skip
    return memory, seen, made


def _observation(
    memory: Memory,
    now: float,
    batch_s: float | None,
    contract: Contract,
    policy: Policy,
    calibrator: PeakCalibrator | None,
) -> Observation:
    assert memory.target is not None and memory.executors is not None
    ahead, upper, note = None, None, ""
    moment = Moment(now, memory.job_s(now), memory.time_scale, sum(memory.arrivals) / len(memory.arrivals), memory.past)
    if policy.name in LISTENERS:
        calibrator = calibrator if policy.name in BY_PEAKS else None
        ahead, upper, note = outlook(memory.forecast, moment, contract.planning, calibrator)
    kept = memory.carried if memory.policy == policy.name else carried.dump(policy.fresh(1))
    return Observation(
        now_s=now,
        since_s=now - memory.looked_at if memory.looked_at is not None else FIRST_LOOK_S,
        job_s=moment.job_now,
        scale=moment.scale,
        arrival_rps=moment.arrival_rps,
        lag_records=memory.lag_records,
        processed_rps=memory.batches.processed_rps,
        busy=memory.batches.busy,
        in_batch=memory.batches.in_batch,
        batch_s=batch_s,
        executors=memory.executors,
        target=memory.target,
        tasks=memory.ceiling(contract),
        overhead_s=memory.model.overhead_s,
        per_record_s=memory.model.per_record_s,
        since_change_s=now - memory.changed_at if memory.changed_at is not None else NEVER_S,
        ahead=ahead,
        forecast_rps=upper,
        forecast_note=note,
        carried=kept,
    )


def _resynced(memory: Memory, now: float, contract: Contract) -> Memory:
    """The target of the last decision while it can still come true, else the executors that are there."""
    if memory.target is None:
        return replace(memory, target=memory.executors)
    waited = math.inf if memory.changed_at is None else now - memory.changed_at
    if memory.target != memory.executors and waited > max(RESYNC_S, RESYNC_LEADS * contract.planning.lead_s):
        return replace(memory, target=memory.executors)
    return memory
