"""What is known of one job from the messages about it: pure steps, a message at a time.

Messages of a job come in the order in which they were written, as a topic has them in one partition: the one that came
last counts, also where its clock was set back. Times are compared only between topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from configs.contract import Contract
from models.policy.core.budget import Account, Promise
from tidecast.messages import Decision, Forecast, Heartbeat, Message, MetricSample, Outcome

ANEW_S = 60.0
"""Seconds without metrics after which a job counts as started anew: others need a moment to hear of it.

A job whose clock was set back by more counts as started anew, too."""
STRANGE = (ArithmeticError, ValueError, TypeError, LookupError, AttributeError)
"""What values that nobody expects in a job's messages may raise; it concerns that job alone."""


@dataclass(frozen=True)
class Followed:
    """What is known of a job; times are wall times, epoch seconds, None for never.

    Attributes:
        sample: the newest second of metrics.
        batch: the newest micro-batch with latencies.
        decision: the newest one.
        target: executors that the standing decision asks for.
        acts: whether that decision is one to be applied.
        forecast: the newest one.
        heard: when decisions ("autoscaler") and forecasts ("serving") were last made or vouched for.
        measured_since: since when metrics come without a gap of `ANEW_S`.
        unfollowed_at: since when the agent, which acts, has not asked for `target`; None where it has.
        account: late seconds as counted here; its unread ones came after `promised_at`.
        promised: late seconds within the window, as the newest decision that says so had them.
        promised_at: when that was; 0 for never.
        rests: whether nothing arrives and nothing waits.
        late_s, production_s, decisions, outcomes: counted since the process began; outcomes by status.
    """

    sample: MetricSample | None = None
    batch: MetricSample | None = None
    decision: Decision | None = None
    target: int | None = None
    acts: bool = False
    forecast: Forecast | None = None
    heard: Mapping[str, float] = field(default_factory=dict)
    measured_since: float = 0.0
    unfollowed_at: float | None = None
    account: Account = field(default_factory=Account)
    promised: float = 0.0
    promised_at: float = 0.0
    rests: bool = False
    late_s: float = 0.0
    production_s: float = 0.0
    decisions: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)

    def counted(self) -> Followed:
        """Return what was counted alone, which no gap in what is heard takes back."""
        return Followed(
            late_s=self.late_s, production_s=self.production_s, decisions=self.decisions, outcomes=self.outcomes
        )

    def window_late_s(self, promise: Promise) -> float:
        """Return the late seconds within the window: as decided with, and those that were counted since."""
        return self.promised + self.account.unread[1] if self.promised_at else self.account.late_s


def take(job: Followed, message: Message, contract: Contract, fresh: bool) -> Followed:
    """Return what is known of a job after a message about it.

    Args:
        job: what was known; not changed.
        message: any that names the job; others than metrics, forecasts, decisions, outcomes and heartbeats say nothing.
        contract: of the job, by which late seconds are counted.
        fresh: whether it was written since the process began: it counts only then.
    """
    if isinstance(message, MetricSample):
        return _measured(job, message, contract, fresh)
    if isinstance(message, Decision):
        return _decided(job, message, fresh)
    if isinstance(message, Forecast):
        return replace(job, forecast=message, heard=_heard(job, "serving", message.wall_time))
    if isinstance(message, Heartbeat):
        if message.by == "autoscaler" and message.standing is None:
            return job  # it runs, and decides nothing for this job
        stands = message.by == "autoscaler" and message.executors is not None and _is_newer(job, message)
        job = replace(job, target=message.executors) if stands else job
        return replace(job, heard=_heard(job, message.by, message.wall_time))
    if isinstance(message, Outcome) and fresh:
        return replace(job, outcomes={**job.outcomes, message.status: job.outcomes.get(message.status, 0) + 1})
    return job


def _is_newer(job: Followed, beat: Heartbeat) -> bool:
    """Whether a heartbeat was said after the newest decision, which comes by another topic; both are by one clock.

    One of the same moment names that decision itself, or the one before it, whose last repeats it tells.
    """
    return job.decision is None or beat.wall_time > job.decision.wall_time


def _heard(job: Followed, by: str, at: float) -> dict[str, float]:
    return {**job.heard, by: at}


def _decided(job: Followed, decision: Decision, fresh: bool) -> Followed:
    job = replace(job, heard=_heard(job, "autoscaler", decision.wall_time), decisions=job.decisions + fresh)
    job = replace(job, decision=decision, target=decision.executors, acts=decision.mode == "act")
    late_s = _late_s(decision.inputs)
    if late_s is None:
        return job
    return replace(job, promised=late_s, promised_at=decision.wall_time, account=job.account.mark_read())


def _late_s(inputs: Mapping[str, Any]) -> float | None:
    """Late seconds within the window by a decision's inputs, which may hold anything."""
    promise = inputs.get("promise")
    late_s = promise.get("late_s") if isinstance(promise, dict) else None
    return float(late_s) if isinstance(late_s, int | float) and late_s >= 0 else None


def _measured(job: Followed, sample: MetricSample, contract: Contract, fresh: bool) -> Followed:
    if sample.kind == "batch":
        return _batched(job, sample, contract, fresh)
    if sample.executors is None:  # back-dated history says nothing about now
        return job
    job, before = _after_step_back(job, job.sample, sample), job.sample
    if before is None or abs(sample.wall_time - before.wall_time) > ANEW_S:
        job = replace(job, measured_since=sample.wall_time, unfollowed_at=None)
    rests = sample.arrival_rps == 0 and not sample.lag_records
    account = job.account
    if rests and before is not None:
        account = account.rest(Promise.of(contract), sample.wall_time - before.wall_time, sample.time_scale)
    job = replace(job, sample=sample, rests=rests, account=account)
    if _follows(job):
        return replace(job, unfollowed_at=None)
    return job if job.unfollowed_at is not None else replace(job, unfollowed_at=sample.wall_time)


def _after_step_back(job: Followed, before: MetricSample | None, now: MetricSample) -> Followed:
    """Where the agent's clock was set back by much, count late seconds from now on, as if a decision had been made."""
    if before is None or now.wall_time >= before.wall_time - ANEW_S:
        return job
    account = replace(job.account, newest=None, counted=0.0)
    return replace(job, account=account, promised_at=min(job.promised_at, now.wall_time - ANEW_S))


def _follows(job: Followed) -> bool:
    """Whether the agent has asked for what is decided, or need not: it asks for those that run and are to come."""
    sample = job.sample
    if sample is None or sample.executors is None or sample.mode != "act" or not job.acts or job.target is None:
        return True
    return sample.executors + (sample.pending_executors or 0) == job.target


def _batched(job: Followed, batch: MetricSample, contract: Contract, fresh: bool) -> Followed:
    if batch.latency_max_s is None:
        return job
    job = _after_step_back(job, job.batch, batch)
    before = job.account
    account = before.add_batch(Promise.of(contract), batch.wall_time, batch.latency_max_s, batch.time_scale)
    seconds, late_s = (now - then for now, then in zip(account.unread, before.unread, strict=True))
    if fresh:
        job = replace(job, late_s=job.late_s + late_s, production_s=job.production_s + seconds)
    counted_before = batch.wall_time <= job.promised_at
    return replace(job, batch=batch, account=account.mark_read() if counted_before else account)
