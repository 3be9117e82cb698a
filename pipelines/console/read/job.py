"""What is known of one job, and how each message changes it: pure steps from one frozen value to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from configs.bounds import DAY_S
from configs.contract import Contract
from models.policy.core.budget import LONG, SHORT, Account, Promise
from pipelines.console.read.decided import Became, Decided, Stood, standing_of
from pipelines.console.read.history import NAN, PackedHistory, Point
from pipelines.console.read.replay import KnownReplay, with_message
from tidecast.messages import Control, Decision, Forecast, Heartbeat, MetricSample, Outcome
from tidecast.orders import ReplayOrder, ReplayProgress

KEPT = 60
"""Decisions, outcomes and batches of a job that are kept."""
FINE, COARSE = (1.0, 600), (10.0, 2160)
"""Seconds of a step and number of steps: ten minutes, six hours."""
SET_BACK_S = 60.0
"""Seconds by which a second of metrics is older than the newest one where the job's clock was set back."""


class NoContract(NamedTuple):
    """That the autoscaler takes nothing of a job, which has no contract; `wall_time` is epoch seconds."""

    job: str
    wall_time: float


@dataclass(frozen=True)
class FollowedJob:
    """What the topics have told of a job; wall times are epoch seconds.

    Attributes:
        sample, batch: its newest interval and micro-batch of metrics.
        accepted: the contract that the autoscaler accepted last; `accepted_at` is when.
        left_at: when it said last that it takes nothing of the job, for want of a contract.
        account: of the contract's promise: as it stood at the newest decision, and the batches since.
        stood: how it stood there; None before a decision has said it.
        batches: (committed, latency of the oldest record, time scale) of the newest ones, oldest first.
        late_s: highest latency of the batches since the newest interval; NaN without one.
        decisions, outcomes: the newest ones, oldest first.
        forecast: the newest one.
        beat: the newest sign of life of its autoscaler.
        word: the mode that a person gave it last.
        replays: those that were heard of last, by id.
        fine, coarse: the last minutes and hours.
        revision: of the model in which it changed last.
    """

    job: str
    sample: MetricSample | None = None
    batch: MetricSample | None = None
    accepted: Contract | None = None
    accepted_at: float = 0.0
    left_at: float = 0.0
    account: Account = field(default_factory=Account)
    stood: Stood | None = None
    batches: tuple[tuple[float, float, float], ...] = ()
    late_s: float = NAN
    decisions: tuple[Decided, ...] = ()
    outcomes: tuple[Became, ...] = ()
    forecast: Forecast | None = None
    beat: Heartbeat | None = None
    word: Control | None = None
    replays: Mapping[str, KnownReplay] = field(default_factory=dict)
    fine: PackedHistory = field(default_factory=lambda: PackedHistory(*FINE))
    coarse: PackedHistory = field(default_factory=lambda: PackedHistory(*COARSE))
    revision: int = 0

    @property
    def contract(self) -> Contract | None:
        """The contract in force; None while none is known, or after the autoscaler has said that there is none.

        A later sign of life of it is as good as a contract: it sends none for a job without one.
        """
        heard_at = self.beat.wall_time if self.beat else 0.0
        return None if self.left_at > max(self.accepted_at, heard_at) else self.accepted

    @property
    def promise(self) -> Promise | None:
        """What its contract promises; None while no contract is known."""
        return None if self.contract is None else Promise.of(self.contract)

    @property
    def rests(self) -> bool:
        """Whether nothing came and nothing waited in the newest interval, which is as new as the newest batch."""
        sample, batch = self.sample, self.batch
        if sample is None or (batch is not None and sample.wall_time < batch.wall_time):
            return False
        return sample.arrival_rps == 0 and sample.lag_records == 0

    @property
    def scale(self) -> float:
        """Job seconds per wall second, of the newest metrics; 1 before any."""
        newest = self.sample or self.batch
        return 1.0 if newest is None else newest.time_scale

    def standing(self) -> dict[str, float | None]:
        """Return how the promise stands, as `Account.standing` does; empty while no contract is known.

        Before a decision has said it a figure is None until its whole window has been seen.
        """
        promise = self.promise
        if promise is None:
            return {}
        found = self.account.standing(promise, self.scale)
        if self.stood is None:
            window_s = promise.window_days * DAY_S / self.scale
            lengths = {"burn_long": window_s / LONG, "burn_short": window_s / LONG / SHORT}
            for name in ("late_s", "budget_left", "burn_long", "burn_short"):
                if self.account.seconds < lengths.get(name, window_s):
                    found[name] = None
        return found


def with_sample(seen: FollowedJob, sample: MetricSample) -> FollowedJob:
    """Return what is known after a record of metrics; one that is not newer than the newest of its kind adds nothing.

    Back-dated history, which knows no executors, says nothing about now. Where the job's clock was set back, what was
    known of later than it shows is forgotten.
    """
    if sample.kind == "batch":
        return seen if seen.batch and sample.wall_time <= seen.batch.wall_time else _with_batch(seen, sample)
    if sample.executors is None:
        return seen
    if seen.sample and sample.wall_time < seen.sample.wall_time - SET_BACK_S:
        seen = _known_by(seen, sample.wall_time)
    if seen.sample and sample.wall_time <= seen.sample.wall_time:
        return seen
    newest = next((known for known in reversed(seen.decisions) if known.at <= sample.wall_time), None)
    capacity_rps = NAN if newest is None or newest.capacity_rps is None else newest.capacity_rps
    point = Point(
        NAN if sample.arrival_rps is None else sample.arrival_rps, sample.executors,
        NAN if newest is None else newest.executors, capacity_rps,
        NAN if sample.lag_records is None else sample.lag_records, seen.late_s,
    )  # fmt: skip
    account = seen.account
    if seen.promise and seen.sample and sample.arrival_rps == 0 and sample.lag_records == 0:
        account = account.rest(seen.promise, sample.wall_time - seen.sample.wall_time, sample.time_scale)
    at = sample.wall_time
    return replace(
        seen, sample=sample, account=account, late_s=NAN, fine=seen.fine.add(at, point),
        coarse=seen.coarse.add(at, point),
    )  # fmt: skip


def _known_by(seen: FollowedJob, at: float) -> FollowedJob:
    """What was known of up to a wall time, and the words of people: of later nothing newer would come for as long."""
    return _with_account(replace(
        seen, sample=None, batch=None, late_s=NAN, accepted_at=min(seen.accepted_at, at),
        left_at=min(seen.left_at, at),
        stood=seen.stood if seen.stood and seen.stood.at <= at else None,
        forecast=seen.forecast if seen.forecast and seen.forecast.wall_time <= at else None,
        beat=seen.beat if seen.beat and seen.beat.wall_time <= at else None,
        batches=tuple(batch for batch in seen.batches if batch[0] <= at),
        decisions=tuple(known for known in seen.decisions if known.at <= at),
        fine=seen.fine.until(at), coarse=seen.coarse.until(at),
    ))  # fmt: skip


def _with_batch(seen: FollowedJob, sample: MetricSample) -> FollowedJob:
    latency_s = sample.latency_max_s
    if latency_s is None:
        return replace(seen, batch=sample)
    account, batch = seen.account, (sample.wall_time, latency_s, sample.time_scale)
    if seen.promise is not None:
        account = account.add_batch(seen.promise, *batch)
        if seen.stood is not None and sample.wall_time <= seen.stood.at:  # the decision has counted it
            account = replace(seen.account, newest=account.newest, counted=account.counted)
    late_s = latency_s if seen.late_s != seen.late_s else max(seen.late_s, latency_s)
    return replace(seen, batch=sample, account=account, batches=(*seen.batches, batch)[-KEPT:], late_s=late_s)


def with_decision(seen: FollowedJob, decision: Decision) -> FollowedJob:
    """Return what is known after a decision: how it says that the promise stands is what the account goes on from."""
    if any(known.id == decision.id for known in seen.decisions):
        return seen
    decisions = tuple(sorted((*seen.decisions, Decided.of(decision)), key=lambda one: one.at)[-KEPT:])
    seen = replace(seen, decisions=decisions)
    stood = standing_of(decision)
    if stood is None or (seen.stood is not None and stood.at < seen.stood.at):
        return seen
    return _with_account(replace(seen, stood=stood))


def _with_account(seen: FollowedJob) -> FollowedJob:
    """The job with the account that goes on from the newest standing, by the batches after it."""
    promise, stood = seen.promise, seen.stood
    if promise is None:
        return seen
    counted, account = 0, Account()
    if stood is not None:
        counted = sum(batch[0] <= stood.at for batch in seen.batches)
        for batch in seen.batches[:counted]:
            account = account.add_batch(promise, *batch)
        resumed = Account.resumed(stood.standing, promise, stood.scale, stood.at)
        account = replace(resumed, newest=account.newest, counted=account.counted)
    for batch in seen.batches[counted:]:
        account = account.add_batch(promise, *batch)
    return replace(seen, account=account)


def with_outcome(seen: FollowedJob, outcome: Outcome) -> FollowedJob:
    """Return what is known after the outcome of a decision; of several of one decision the last one holds."""
    others = [known for known in seen.outcomes if known.id != outcome.decision_id]
    return replace(seen, outcomes=(*others, Became.of(outcome))[-KEPT:])


def with_forecast(seen: FollowedJob, forecast: Forecast) -> FollowedJob:
    """Return what is known after a forecast: that of the highest epoch holds, and of one server the latest."""
    known = seen.forecast
    newer = known is None or (forecast.epoch, forecast.wall_time) >= (known.epoch, known.wall_time)
    return replace(seen, forecast=forecast) if newer else seen


def with_beat(seen: FollowedJob, beat: Heartbeat) -> FollowedJob:
    """Return what is known after a sign of life; only that of an autoscaler is kept."""
    newer = beat.by == "autoscaler" and (seen.beat is None or beat.wall_time >= seen.beat.wall_time)
    return replace(seen, beat=beat) if newer else seen


def with_word(seen: FollowedJob, word: Control) -> FollowedJob:
    """Return what is known after a person has given a mode: the topic's last one holds, as it does for the agent."""
    return seen if word.mode is None else replace(seen, word=word)


def with_replay(seen: FollowedJob, message: ReplayOrder | ReplayProgress) -> FollowedJob:
    """Return what is known after an order of a replay, or a word on one."""
    replays = with_message(seen.replays, message)
    return seen if replays is seen.replays else replace(seen, replays=replays)


def with_contract(seen: FollowedJob, contract: Contract, at: float) -> FollowedJob:
    """Return what is known after a contract was accepted at a wall time; the latest one holds."""
    if at < seen.accepted_at:
        return seen
    first, seen = seen.contract is None, replace(seen, accepted=contract, accepted_at=at)
    return _with_account(seen) if first else seen  # of another promise the late seconds so far count on


def without_contract(seen: FollowedJob, said: NoContract) -> FollowedJob:
    """Return what is known after the autoscaler has said that the job has no contract."""
    return replace(seen, left_at=max(seen.left_at, said.wall_time))
