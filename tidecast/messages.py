"""The records on Tidecast's topics: frozen, JSON on the wire, checked when they are read.

Times are seconds since the epoch. `time` is the job's own time (trace time in a replay), `wall_time` the clock on the
wall, `time_scale` how many seconds of the first pass in one of the second; rates and durations are per wall second.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from tidecast.fields import MessageError as MessageError
from tidecast.fields import above_zero, at_least, checked, one_of

SCHEMA = 1
FUTURE_S = 300.0
"""A record whose `wall_time` lies further ahead than this is refused: its sender's clock is wrong."""


@dataclass(frozen=True)
class MetricSample:
    """One second (`kind="interval"`) or one micro-batch (`kind="batch"`) of a job.

    An interval carries what was seen from outside: arrivals by the broker's end offsets, lag, executors. A batch
    carries what Spark said of it. An interval covers the job's own time `[time, time + span_s)` and was measured at its
    end, `wall_time`; a back-dated history record is one with a long span.
    """

    job: str
    kind: str
    time: float
    wall_time: float
    time_scale: float = 1.0
    span_s: float = 1.0
    arrival_rps: float | None = at_least(0)
    processed_rps: float | None = at_least(0)
    lag_records: int | None = at_least(0)
    batch_id: int | None = at_least(0)
    batch_rows: int | None = at_least(0)
    batch_s: float | None = at_least(0)
    stage_s: float | None = at_least(0)
    executors: int | None = at_least(0)
    pending_executors: int | None = at_least(0)
    cores: int | None = at_least(0)
    task_ceiling: int | None = at_least(1)
    watermark_lag_s: float | None = None
    state_rows: int | None = at_least(0)
    latency_p50_s: float | None = at_least(0)
    latency_p95_s: float | None = at_least(0)
    latency_max_s: float | None = at_least(0)
    mode: str | None = None
    schema: int = SCHEMA

    KINDS: typing.ClassVar = ("interval", "batch")

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)
        one_of("kind", self.kind, self.KINDS)
        above_zero("span_s", self.span_s)
        if self.kind == "interval" and self.arrival_rps is None:
            raise MessageError("arrival_rps is missing from an interval")


@dataclass(frozen=True)
class Forecast:
    """Quantiles of the arrival rate for the next steps.

    `quantiles[h][q]` is records/s in the step that begins `h` steps after `time`, at `levels[q]`; `last_rps` are those
    of the step before it, where they are known.
    """

    job: str
    time: float
    wall_time: float
    time_scale: float
    step_s: float
    levels: list[float]
    quantiles: list[list[float]]
    model: str
    version: str
    alias: str
    kind: str
    history_steps: int
    epoch: int
    last_rps: float | None = at_least(0)
    schema: int = SCHEMA

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)
        above_zero("step_s", self.step_s)
        if not self.quantiles or not self.levels:
            raise MessageError("a forecast without steps or without levels")
        if not all(a < b for a, b in itertools.pairwise([0.0, *self.levels, 1.0])):
            raise MessageError(f"levels={self.levels}: they must rise between 0 and 1")
        for step, row in enumerate(self.quantiles):
            if len(row) != len(self.levels):
                raise MessageError(f"quantiles[{step}] has {len(row)} values for {len(self.levels)} levels")
            if min(row) < 0 or any(a > b for a, b in itertools.pairwise(row)):
                raise MessageError(f"quantiles[{step}]={row}: they must rise from 0 upwards")


@dataclass(frozen=True)
class Decision:
    """One evaluation of a policy, holds included; `inputs` alone determine all that follows from them."""

    id: str
    job: str
    time: float
    wall_time: float
    time_scale: float
    mode: str
    policy: str
    executors: int
    reason: str
    codes: list[str]
    inputs: dict[str, Any]
    expected: dict[str, Any]
    admission_rps: float | None = None
    replay_rps: float | None = None
    schema: int = SCHEMA

    MODES: typing.ClassVar = ("observe", "act")

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)
        one_of("mode", self.mode, self.MODES)
        if self.executors < 0:
            raise MessageError(f"executors={self.executors}: at least 0 is expected")


@dataclass(frozen=True)
class Outcome:
    """What a decision really did. Times are wall times; None where it did not come to that.

    `status`: confirmed (executors are as decided, and for a scale-up a batch has used them), ineffective (not within
    the time allowed), refused (with the reason; nothing was changed), failed (the cluster said no).
    """

    decision_id: str
    job: str
    time: float
    wall_time: float
    time_scale: float
    status: str
    reason: str
    executors_before: int | None = None
    executors_after: int | None = None
    target: int | None = None
    decided_at: float | None = None
    applied_at: float | None = None
    confirmed_at: float | None = None
    useful_at: float | None = None
    expected: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    STATUSES: typing.ClassVar = ("confirmed", "ineffective", "refused", "failed")

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)
        one_of("status", self.status, self.STATUSES)


@dataclass(frozen=True)
class Control:
    """A word to an agent: its mode, or the clock of a replay (`trace_start` is job time at `wall_start`)."""

    job: str
    wall_time: float
    mode: str | None = None
    wall_start: float | None = None
    trace_start: float | None = None
    time_scale: float | None = None
    schema: int = SCHEMA

    MODES: typing.ClassVar = ("observe", "act", "freeze")

    def check(self) -> None:
        """Refuse what no field alone shows."""
        if self.time_scale is not None:
            above_zero("time_scale", self.time_scale)
        if self.mode is not None:
            one_of("mode", self.mode, self.MODES)


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life of who forecasts or decides for a job, at most 10 s apart, and what stands meanwhile.

    A record that only says again what stands is not repeated on its topic: this one vouches for it, and its age is
    judged by `wall_time` here. `standing` is the id of the decision, or the epoch of the forecast as text; None while
    there is none. `since` is the wall time at which it was made, `executors` what a standing decision asks for,
    `repeats` how many evaluations have come to the same since.
    """

    job: str
    by: str
    time: float
    wall_time: float
    time_scale: float
    standing: str | None = None
    since: float | None = at_least(0)
    executors: int | None = at_least(0)
    repeats: int | None = at_least(0)
    schema: int = SCHEMA

    BY: typing.ClassVar = ("serving", "autoscaler")

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)
        one_of("by", self.by, self.BY)


@dataclass(frozen=True)
class ContractText:
    """What a decision's `contract_hash` stands for: the contract as JSON; `time` is the wall's, when it was accepted.

    The key on its topic is the hash, so that compaction keeps one of each.
    """

    job: str
    time: float
    wall_time: float
    time_scale: float
    hash: str
    text: str
    schema: int = SCHEMA

    def check(self) -> None:
        """Refuse what no field alone shows."""
        above_zero("time_scale", self.time_scale)


@dataclass(frozen=True)
class Reject:
    """A record that could not be accepted, with the reason; `by` is who refused it."""

    topic: str
    partition: int
    offset: int
    by: str
    reason: str
    value: str
    wall_time: float
    schema: int = SCHEMA

    def check(self) -> None:
        """Nothing beyond its fields."""


Message = MetricSample | Forecast | Decision | Outcome | Control | Heartbeat | ContractText | Reject
M = TypeVar("M", MetricSample, Forecast, Decision, Outcome, Control, Heartbeat, ContractText, Reject)


def encode(message: Message) -> bytes:
    """The message as JSON; non-finite numbers are refused here, before anybody can read them."""
    try:
        return json.dumps(dataclasses.asdict(message), allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise MessageError(f"{type(message).__name__} of {getattr(message, 'job', '?')}: {error}") from None


def decode(kind: type[M], raw: bytes | str | None, now: float | None = None) -> M:
    """Read one record; with `now` (wall time), one from the far future is refused too.

    Raises:
        MessageError: not JSON, not an object, an unknown schema, a missing, unknown, mistyped, non-finite or
            out-of-range field.
    """
    try:
        data = json.loads(raw if raw is not None else "")
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise MessageError(f"a JSON {type(data).__name__}; an object is expected")
    if data.get("schema") != SCHEMA:
        raise MessageError(f"schema={data.get('schema')!r}; this reader knows {SCHEMA}. Upgrade the older side.")
    hints = _hints(typing.cast(Any, kind))
    if unknown := sorted(set(data) - set(hints)):
        raise MessageError(f"unknown field {unknown[0]!r}={data[unknown[0]]!r}")
    values = {}
    for spec in dataclasses.fields(kind):
        if spec.name not in data:
            if spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING:
                raise MessageError(f"field {spec.name!r} is missing")
            continue
        values[spec.name] = checked(spec.name, data[spec.name], hints[spec.name], spec.metadata.get("least"))
    message = kind(**values)
    message.check()
    wall = getattr(message, "wall_time", None)
    if now is not None and wall is not None and wall > now + FUTURE_S:
        raise MessageError(f"wall_time={wall} is {wall - now:.0f} s ahead of the reader; set the sender's clock")
    return message


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {spec.name: hints[spec.name] for spec in dataclasses.fields(kind)}
