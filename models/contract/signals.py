"""What the controller knows of a job: the plan of its operators, and the signals of one interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from configs.bounds import Count, Declared, Name, NotNegative, Positive

MOST = 1e18
"""No rate, count or size that was measured is larger; a latency beyond it counts as so long."""


@dataclass(frozen=True)
class PlannedOperator(Declared):
    """An operator, as planned and calibrated.

    Attributes:
        name: of the operator.
        prior_rps: what an executor serves, before anything was measured, records/s.
        live_ratio: records that reach it per live source record, until measured.
        replay_ratio: the same per replayed one; 0: the replay does not pass it.
        core_s: core-seconds of a record.
        held_bytes: bytes of a record in flight.
    """

    name: Name
    prior_rps: Positive
    live_ratio: NotNegative = 1.0
    replay_ratio: NotNegative = 1.0
    core_s: NotNegative = 0.0
    held_bytes: NotNegative = 0.0


@dataclass(frozen=True)
class SharedPlan(Declared):
    """The operators that live records and the replay pass, and how they run.

    Attributes:
        operators: at least one; in micro-batches each is a query, as whatever is fused takes one latency.
        trigger_s: seconds from micro-batch to micro-batch; None: records are served one by one (M/M/1).
        overhead_s: fixed seconds of a micro-batch.
        contention: κ of `service_rate.capacity`.
    """

    operators: Annotated[tuple[PlannedOperator, ...], Field(min_length=1)]
    trigger_s: Positive | None = None
    overhead_s: NotNegative = 0.0
    contention: NotNegative = 0.0

    def __post_init__(self) -> None:
        names = [one.name for one in self.operators]
        if not names:
            raise ValueError("operators=(): at least one is expected")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"operators: two are called {twice[0]!r}. Give each a name of its own")


@dataclass(frozen=True)
class OperatorReading(Declared):
    """What an operator did in an interval; None: unread.

    Attributes:
        completed: records.
        busy_s: executor-seconds of work on them, without the fixed part of a batch.
        live_ratio, replay_ratio: as in `PlannedOperator`, measured.
        certain_rps: what an executor certainly serves by an estimate that was learned elsewhere, such as the one that
            scaling plans with, records/s; it is then taken instead of a posterior of completed and busy.
    """

    completed: NotNegative | None = None
    busy_s: NotNegative | None = None
    live_ratio: NotNegative | None = None
    replay_ratio: NotNegative | None = None
    certain_rps: NotNegative | None = None


@dataclass(frozen=True)
class Signals(Declared):
    """What was measured up to the end of an interval; None, or no entry: unread.

    Attributes:
        time_s: end of the interval, epoch seconds.
        live_rps: live source records/s that arrived.
        live_high_rps: the most expected in the next interval, such as the 90 % quantile of a forecast, records/s.
        replay_backlog: source records of the replay that wait.
        replay_most_rps: most of the replay's records/s that live records bear, by who measures that; None: unknown.
        latency_ms: measured quantile by `PathLimit.name`.
        operators: readings by name.
        lag_ms: event time that the watermark is behind.
        state_bytes, queue_bytes: of all operators.
        busy: share by resource: cpu, mem, net, disk.
        energy_cores: busy cores.
        error_rel: largest bound of a relative error; None also where no approximate operator takes theta.
        maintenance_rps: what checkpoints and compaction ask of the slowest operator, records/s.
        tenants: live source records/s that each asks for.
        executors: that run.
        changed: whether plan or executors changed, or the query restarted, within the interval.
        starting: whether executors are under way, or came so lately that what they bring is not seen; None: not known.
    """

    time_s: float
    live_rps: NotNegative | None = None
    live_high_rps: NotNegative | None = None
    replay_backlog: NotNegative | None = None
    replay_most_rps: NotNegative | None = None
    latency_ms: Mapping[str, NotNegative] = field(default_factory=dict)
    operators: Mapping[str, OperatorReading] = field(default_factory=dict)
    lag_ms: NotNegative | None = None
    state_bytes: NotNegative | None = None
    queue_bytes: NotNegative | None = None
    busy: Mapping[str, NotNegative] = field(default_factory=dict)
    energy_cores: NotNegative | None = None
    error_rel: NotNegative | None = None
    maintenance_rps: NotNegative | None = None
    tenants: Mapping[str, NotNegative] = field(default_factory=dict)
    executors: Count | None = None
    changed: bool = False
    starting: bool | None = None


def clean_signals(signals: Signals) -> Signals:
    """Return the signals with what is NaN, infinite, negative or beyond reason as unread.

    An infinite latency is no fault of the sensor: nothing came out. It counts as the longest.

    Raises:
        ValueError: the time is not finite.
    """
    if not abs(signals.time_s) < MOST:
        raise ValueError(f"time_s={signals.time_s}: epoch seconds are expected. Is the clock set?")
    latency = {name: min(value, MOST) for name, value in signals.latency_ms.items()}
    return replace(
        signals, time_s=float(signals.time_s), live_rps=_known(signals.live_rps),
        live_high_rps=_known(signals.live_high_rps), replay_backlog=_known(signals.replay_backlog),
        replay_most_rps=_known(signals.replay_most_rps), latency_ms=_all_known(latency),
        operators={
            name: OperatorReading(
                *map(_known, (one.completed, one.busy_s, one.live_ratio, one.replay_ratio, one.certain_rps))
            )
            for name, one in sorted(signals.operators.items())
        },
        lag_ms=_known(signals.lag_ms), state_bytes=_known(signals.state_bytes),
        queue_bytes=_known(signals.queue_bytes), busy=_all_known(signals.busy),
        energy_cores=_known(signals.energy_cores), error_rel=_known(signals.error_rel),
        maintenance_rps=_known(signals.maintenance_rps), tenants=_all_known(signals.tenants),
        executors=signals.executors if signals.executors and signals.executors > 0 else None,
    )  # fmt: skip


def _known(value: float | None) -> float | None:
    return float(value) if value is not None and 0 <= value <= MOST else None


def _all_known(values: Mapping[str, float]) -> dict[str, float]:
    found = {name: _known(value) for name, value in sorted(values.items())}
    return {name: value for name, value in found.items() if value is not None}
