"""The state of a job: what replays of it need, and what the threads of its agent share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidecast.connection.outbox import Outbox
from tidecast.connection.signing import SigningKeys
from tidecast.control import WALL, Clock
from tidecast.guard import Limits, SeenDecisions
from tidecast.messages import Decision, MessageError, MetricSample
from tidecast.orders import ReplayOrder, order_key, standing_order
from tidecast.outcomes import Tracker
from tidecast.spark.actuator import ExecutorActuator
from tidecast.spark.sensors import BottleneckStage, OffsetCurve, Offsets, Partition


@dataclass(kw_only=True)
class OrderedJob:
    """What is known of a job where ranges of it are read again; times are wall times in epoch seconds.

    Attributes:
        name: of the job.
        clock: the job's own; None while a replay's has not been announced.
        outbox: for what is told.
        topics: that its query reads; none where that is not known, or not this application's.
        lost_contact_s: silence of the autoscaler after which an acting agent hands back.
        mode: the present one.
        prefix: of the names of Tidecast's own topics.
        signing: keys of what this job obeys; None: it obeys unsigned messages, too.
        heard_at: the autoscaler's newest sign of life, seconds of the steady clock: wall clocks are set.
        orders: newest order of each replay, by its id.
        orders_read: whether control was read to the end that it had at first, so that no order is overtaken any more.
        replay_rps: records per wall second that its replays may read together, as decided last; None: nobody decides.
        may_begin: replays that may read their first batch with it; None: all may.
        record_s: run time of the heaviest stage's tasks for each record of a batch; None before one is known.
        batch_s: what its live query's newest batch of records took, seconds; 0 before one, and where another runs it.
    """

    name: str
    clock: Clock | None
    outbox: Outbox
    topics: tuple[str, ...] = ()
    lost_contact_s: float = 60.0
    mode: str = "observe"
    prefix: str = ""
    signing: SigningKeys | None = None
    heard_at: float = -math.inf
    orders: dict[str, ReplayOrder] = field(default_factory=dict)
    orders_read: bool = False
    replay_rps: float | None = None
    may_begin: frozenset[str] | None = None
    record_s: float | None = None
    batch_s: float = 0.0

    @property
    def time(self) -> Clock:
        """The job's clock; wall time while a replay's has not been announced."""
        return self.clock or WALL

    @property
    def heard(self) -> bool:
        """Whether the autoscaler has given a sign of life within `lost_contact_s`."""
        return time.monotonic() - self.heard_at <= self.lost_contact_s

    def follow_replay_rate(self, decision: Decision) -> None:
        """Note how fast replays may read, and which may begin: all, where an older autoscaler names none."""
        told = decision.inputs.get("replay")
        named = told.get("may_begin") if isinstance(told, dict) else None
        self.may_begin = frozenset(map(str, named)) if isinstance(named, list) else None
        self.replay_rps = decision.replay_rps

    def take_order(self, key: str, order: ReplayOrder) -> None:
        """Take an order that came under a key of `control`, if it is newer than the known one of its replay.

        Raises:
            MessageError: it is another replay's.
        """
        if order_key(order.job, order.id) != key:
            raise MessageError(f"job={order.job!r}, id={order.id!r} under the key {key!r}")
        self.orders[order.id] = standing_order(self.orders.get(order.id), order)


@dataclass(frozen=True)
class PendingMode:
    """A mode that was asked for and is not reached: when it was tried last (steady clock, s), why it was refused."""

    mode: str
    tried_s: float
    refusal: str = ""


@dataclass(kw_only=True)
class Job(OrderedJob):
    """The state of a job that its agent's threads share.

    Attributes:
        widest_mode: the widest mode that `attach` allows.
        application: id of the Spark application that runs its query; None: not known.
        pending: the mode that it is to be in, where the cluster has refused it or Spark did not answer; else None.
        limits: what decisions may ask for.
        lock: guards what several threads change together: mode, target, tracker.
        stop: set when the agent's threads are to end.
        curves: sampled end offsets over time, by (topic, partition).
        ends: newest sampled end offsets of its topics.
        committed: end offsets of its last finished batch; None before one.
        executors: slots of every registered executor by id, which are its cores unless a task takes several.
        owns_executors: whether this agent sets how many executors the application has for this query.
        executors_at_takeover: executors that were there when the agent took over.
        handed_back: whether its silence was answered (`tidecast.modes.hand_back_if_silent`).
        admission_rps: live records per wall second that may be read, as decided last; None: all.
        admitted_by: the decision that says so and its contract's hash, for people.
        cannot_hold: why live records cannot be held back, and what to do; None: they can, or that is not known yet.
        weights: of the topics that share these, by name without the prefix, as the contract has them; 1 where it says
            none.
        batches: how many with records have been seen; `rows` is those of the newest one.
        period_s: from the begin of one batch of records to that of the next, wall seconds; at least as long as it took.
    """

    widest_mode: str
    limits: Limits
    actuator: ExecutorActuator
    application: str | None = None
    pending: PendingMode | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    stop: threading.Event = field(default_factory=threading.Event)
    seen: SeenDecisions = field(default_factory=SeenDecisions)
    tracker: Tracker = field(default_factory=Tracker)
    curves: dict[Partition, OffsetCurve] = field(default_factory=dict)
    bottleneck: BottleneckStage = field(default_factory=BottleneckStage)
    ends: Offsets = field(default_factory=dict)
    committed: Offsets | None = None
    executors: dict[str, int] = field(default_factory=dict)
    owns_executors: bool = False
    executors_at_takeover: int = 0
    handed_back: bool = False
    admission_rps: float | None = None
    admitted_by: str = ""
    cannot_hold: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    batches: int = 0
    rows: int = 0
    period_s: float = 1.0

    def ceiling(self) -> int | None:
        """Return how many tasks of the bottleneck stage run in parallel at most; more cores than that are of no use.

        None until batches have told it: of a query that was started again the autoscaler knows it, and the number of
        partitions may be far less. It is that one where Spark has shown no stage in more than COLD (3) of them.
        """
        unseen = len(self.ends) if self.batches > BottleneckStage.COLD else 0
        return self.bottleneck.tasks() or unseen or None

    def follow_admission(self, decision: Decision) -> None:
        """Note how many live records may be read; weights that are no numbers above 0 count as none."""
        relief = decision.inputs.get("relief")
        self.admission_rps = decision.admission_rps
        self.admitted_by = f"{decision.id}, contract {decision.inputs.get('contract_hash', 'unknown')}"
        weights = relief.get("weights") if isinstance(relief, dict) else None
        known = weights.items() if isinstance(weights, dict) else ()
        self.weights = {name: float(own) for name, own in known if type(own) in (int, float) and own > 0}

    def decide_nothing(self) -> None:
        """Forget how fast replays and live records may be read: nobody decides it any more."""
        self.replay_rps = self.admission_rps = None

    def live(self) -> list[str]:
        """Return the ids of the executors that count for this query, without those that were asked to leave."""
        return self.actuator.own(self.executors)

    def leaving(self) -> list[str]:
        """Return the ids of its executors that were asked to leave and are still there."""
        return self.actuator.leaving(self.executors)

    def publish(self, kind: str, since: float, until: float, measured_at: float, **measured: Any) -> None:
        """Queue a `MetricSample` for the topic `metrics`; executors, cores, mode and the job's time are filled in.

        `time` is the job time at `since`, `span_s` the span in job seconds. Nothing is queued while the job's clock is
        unknown. Floats are rounded to 3 digits.

        Args:
            kind: "interval" (what the broker shows) or "batch" (what Spark reports).
            since: begin of the measured span, wall epoch seconds.
            until: its end, exclusive.
            measured_at: the sample's `wall_time`, epoch seconds.
            **measured: further fields of `MetricSample`, e.g. `arrival_rps` (records per wall second).

        Raises:
            TypeError: a name in `measured` is no field, or a value is not one that JSON knows.
        """
        clock, executors = self.clock, self.executors
        cores = [executors[i] for i in self.actuator.own(executors)]
        if clock is None:
            return
        rounded: dict[str, Any] = {name: round(v, 3) if isinstance(v, float) else v for name, v in measured.items()}
        target = self.actuator.target if self.owns_executors else None
        sample = MetricSample(
            job=self.name, kind=kind, time=round(clock.at(since), 3), wall_time=round(measured_at, 3),
            time_scale=clock.scale, span_s=round((until - since) * clock.scale, 3), executors=len(cores),
            pending_executors=None if target is None else max(0, target - len(cores)),
            cores=sum(cores), task_ceiling=self.ceiling(), mode=self.mode, application=self.application,
            cannot_hold=self.cannot_hold, **rounded,
        )  # fmt: skip
        self.outbox.enqueue("metrics", self.name, sample)
