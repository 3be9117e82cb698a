"""One evaluation of a job: from what is remembered of it to what its policy sees, and to what that decides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from configs.contract import Contract
from configs.policies import BY_PEAKS, LISTENERS
from models.policy.copies import copy_with
from models.policy.core import carried
from models.policy.core.backlog import backlog
from models.policy.core.batches import close_look
from models.policy.core.budget import Promise
from models.policy.core.capacity import useful_executors
from models.policy.core.policy import Policy
from models.policy.live.catch_up import behind_since
from models.policy.live.held_forecast import begins_too_late
from models.policy.live.memory import Memory
from models.policy.live.plan import Plan, make_plan
from models.policy.live.unseen import running_unseen
from models.policy.planners.delay import with_delay
from models.policy.received.arrival_rate import rate_of_seconds
from models.policy.received.observation import Observation
from models.policy.received.outlook import SMOOTH_S, Moment, Outlook, make_outlook
from models.policy.received.peak_calibrator import PeakCalibrator

FIRST_LOOK_S = 1.0  # seconds taken as passed at the first evaluation
NEVER_S = 1e6
"""Seconds reported as time since the last change, or raise, before there was one."""
RESYNC_S, RESYNC_LEADS = 20.0, 1.5
"""Seconds, or lead times if longer, after which a target is replaced by what of it is there or asked for."""
SET_BACK_S = 5.0
"""Seconds by which the last evaluation lies ahead of a clock that was set back since."""


def evaluate(
    memory: Memory, now: float, contract: Contract, policy: Policy, version: str | None = None, stand_in: str = "",
    calibrator: PeakCalibrator | None = None,
) -> tuple[Memory, Observation | None, Plan | None]:  # fmt: skip
    """Evaluate one live job: observe it as its memory has it, and ask the policy for a number of executors.

    A target that the executors have not reached after 20 s, or 1.5 lead times if longer, or whose driver has ended, is
    replaced by what of it is there, or asked of the cluster by the agent. After a decision of another policy this one
    begins with an empty memory. Where nothing arrives and nothing waits the error budget does not burn. Nothing is read
    or written.

    Args:
        memory: of the job.
        now: epoch seconds.
        contract: of the job (latency target, executor bounds, planning), with the lead time that is planned for.
        policy: that decides, built from it.
        version: of a learned policy's agent in the registry; None for others.
        stand_in: why this policy decides instead of the one asked for; "" if it is that one.
        calibrator: peak quantiles learned with the forecast's model; used by `mpc` and `dqn` alone.

    Returns:
        The new memory, what was observed and the decision. While executors or arrivals are unknown, or the newest
        metrics are older than the contract's `metrics_age_s`: the memory as it was, None, None.

    Raises:
        KeyError: the held forecast lacks "quantiles", "levels", "step_s", "time", "wall_time", "model", "version" or
            "kind".
        ValueError, TypeError: its numbers, or those of `memory.carried`, are none, or ragged.
        ZeroDivisionError: `memory.time_scale` is 0 and a forecast is held.
    """
    if memory.executors is None or memory.metric_at is None or not memory.arrivals:
        return memory, None, None
    if now - memory.metric_at > contract.planning.metrics_age_s:
        return memory, None, None
    executors = memory.executors - _lent(memory, memory.executors, contract)
    target = _target(memory, executors, now, contract)
    missing_at = None if executors >= target else now if memory.missing_at is None else memory.missing_at
    batches, batch_s = close_look(memory.batches, memory.lag_records)
    newest = memory.arrivals[-int(SMOOTH_S) :]
    arrival_rps = sum(newest) / len(newest)
    waiting = float(backlog(arrival_rps, memory.lag_records, contract.batch_s))
    read = memory.account.newest  # what waits is younger than the oldest record of the newest batch
    most_s = math.inf if read is None else max(now - read[1], 0.0)
    behind_at = behind_since(memory.behind_at, now, arrival_rps, waiting, contract.latency_target_s, most_s)
    resting = arrival_rps == 0 and memory.lag_records == 0
    tasks = memory.ceiling(contract)
    since_s = FIRST_LOOK_S if memory.looked_at is None else now - memory.looked_at
    if resting:
        memory = copy_with(memory, account=memory.account.rest(Promise.of(contract), since_s, memory.time_scale))
    moment = Moment(now, memory.job_s(now), memory.time_scale, arrival_rps, memory.past, memory.refuted)
    ahead, upper, note = _hear(memory, moment, contract, policy, calibrator)
    seen = Observation(
        now_s=now, since_s=since_s, job_s=moment.job_now, scale=moment.scale, arrival_rps=arrival_rps,
        steady_rps=rate_of_seconds(memory.arrivals), lag_records=memory.lag_records,
        processed_rps=batches.processed_rps, busy=_own_share(batches.busy, memory, executors),
        in_batch=batches.in_batch, batch_s=batch_s,
        busiest=0.0 if batches.busy == 0 else _own_share(memory.busiest, memory, executors),
        executors=executors, target=target, tasks=tasks,
        overhead_s=memory.model.overhead_s, per_record_s=memory.model.per_record_s,
        since_change_s=NEVER_S if memory.changed_at is None else now - memory.changed_at,
        since_raise_s=NEVER_S if memory.raised_at is None else now - memory.raised_at,
        ahead=ahead, forecast_rps=upper, forecast_note=note, version=version, stand_in=stand_in,
        lead_s=contract.planning.lead_s, lead_growth=contract.planning.start_growth,
        counted_s=memory.account.unread[0], late_s=memory.account.unread[1],
        burn=None if resting else memory.account.burn(contract.error_budget),
        behind_s=None if behind_at is None else now - behind_at, scatter=memory.scatter,
        unmet=memory.target if memory.no_room and (memory.target or 0) > executors else None,
        useful=most_of_use(memory, contract),
        down_delay_s=contract.planning.scale_down_delay_s, carried=_carried(memory, now, contract, policy),
        rto_in_turns=True, missing_s=None if missing_at is None else now - missing_at,
    )  # fmt: skip
    after, made = make_plan(seen, contract, policy)
    memory = copy_with(
        memory, target=made.executors, changed_at=memory.changed_at if made.executors == target else now,
        raised_at=last_raise(memory, target, made.executors, now), delay_s=seen.down_delay_s,
        batches=batches, looked_at=now, policy=policy.name, carried=carried.dump(after),
        account=memory.account.mark_read(), behind_at=behind_at, no_room=seen.unmet is not None,
        missing_at=None if executors >= made.executors else now if missing_at is None else missing_at,
    )  # fmt: skip
    return memory, seen, made


def last_raise(memory: Memory, target: int, executors: int, now: float) -> float | None:
    """Return when executors were last asked to start for live records, epoch seconds; None: never.

    Those that run for replays serve a raise as well: where these are enough nothing starts that the next one would wait
    for.

    Args:
        memory: of the job, before the raise.
        target: executors for live records before it.
        executors: the same, as they are asked for now.
        now: epoch seconds.
    """
    return now if executors > max(target, running_unseen(memory)) else memory.raised_at


def _carried(memory: Memory, now: float, contract: Contract, policy: Policy) -> dict[str, Any]:
    """What the policy carries: nothing of another one's; with another delay all that was needed counts from now on."""
    if memory.policy != policy.name:
        return carried.dump(policy.fresh(1))
    if memory.delay_s == contract.planning.scale_down_delay_s:
        return memory.carried
    return carried.dump(with_delay(carried.restore(memory.carried, policy), now, contract.planning))


def _hear(
    memory: Memory, moment: Moment, contract: Contract, policy: Policy, calibrator: PeakCalibrator | None
) -> tuple[Outlook | None, float | None, str]:
    """What a policy that listens gets of the forecast, as of `make_outlook`; nothing for the others."""
    if policy.name not in LISTENERS:
        return None, None, ""
    if memory.forecast and begins_too_late(memory, memory.forecast):  # made before a clock was set back
        return None, None, "no forecast of now: the last one begins later"
    known = calibrator if policy.name in BY_PEAKS else None
    return make_outlook(memory.forecast, moment, contract.planning, known)


def with_clock_set_back(memory: Memory, now: float) -> Memory:
    """Return the memory with no time ahead of a clock that was set back since the last evaluation; else as it was.

    What is noted of later than now counts as noted now: else nothing would be changed, sent again or too old before the
    clock has come there again. A policy's own times are in its memory, which begins anew.

    Args:
        memory: so far.
        now: epoch seconds.
    """
    if memory.looked_at is None or memory.looked_at <= now + SET_BACK_S:
        return memory
    held, standing = memory.forecast, memory.standing
    names = ("changed_at", "raised_at", "behind_at", "missing_at")
    noted = {name: at and min(at, now) for name in names for at in [getattr(memory, name)]}
    return copy_with(
        memory, **noted, looked_at=None, policy="", carried={},
        standing=standing and replace(standing, since=min(standing.since, now)),
        forecast=held and {**held, "wall_time": min(held["wall_time"], now)},
    )  # fmt: skip


def most_of_use(memory: Memory, contract: Contract) -> int:
    """Return the most executors that the tasks of a job's heavy stage can fill, within its contract's bounds."""
    bounds = contract.executors
    return useful_executors(memory.ceiling(contract), bounds.cores, bounds.min, bounds.max)


def _lent(memory: Memory, executors: int, contract: Contract) -> int:
    """How many of the executors that run are there for replays: the policy plans for live records alone."""
    if memory.target is None:
        return 0
    return min(memory.replay.executors_soon(contract.executors.max), max(executors - memory.target, 0))


def _own_share(share: float | None, memory: Memory, executors: int) -> float | None:
    """A busy share of all executors that run, as one of those without the lent ones: live batches run on all."""
    if share is None or not memory.executors or executors in (0, memory.executors):
        return share
    return min(share * memory.executors / executors, 1.0)


def _target(memory: Memory, executors: int, now: float, contract: Contract) -> int:
    """That of the last decision while it can still come true; else of it what runs or is asked for.

    Of one that was lost another comes, and what the cluster has no room for comes later: to say less would call that
    off. An agent that begins anew asks for what it was started with, one in another mode, or with narrower bounds, for
    less than was decided.
    """
    waited = math.inf if memory.changed_at is None else now - memory.changed_at
    if memory.target is not None and waited <= max(RESYNC_S, RESYNC_LEADS * contract.planning.lead_s):
        return memory.target
    asked = (memory.executors or 0) + (memory.pending or 0)
    return max(executors, asked if memory.target is None else min(memory.target, asked))
