"""The messages on Tidecast's topics: frozen dataclasses, JSON on the wire, validated when they are read.

Times are epoch seconds. `time` is the job's own time (trace time in a replay), `wall_time` the clock on the wall,
`time_scale` how many job seconds pass in one wall second. Rates are records per wall second; durations are wall
seconds, except `span_s` and `step_s`, which are job seconds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from tidecast.fields import LATEST_S, MOST, Bounds, Count, Executors, JobName, Millis, OneOf, Rate, Scale, Span, Time
from tidecast.fields import MessageError as MessageError
from tidecast.fields import short_repr as short_repr
from tidecast.metrics import MetricSample as MetricSample
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.wire import FUTURE_S as FUTURE_S
from tidecast.wire import SCHEMA as SCHEMA
from tidecast.wire import decode as decode
from tidecast.wire import decode_keyed as decode_keyed
from tidecast.wire import encode as encode

REPEATED = 2000  # most characters of a record, and of the reason, that a reject holds, so that a broker takes it
_MODES = ("observe", "act")
_WORDS = (*_MODES, "freeze")


@dataclass(frozen=True)
class Forecast:
    """Quantiles of the arrival rate for the next steps of `step_s` job seconds.

    `quantiles[h][q]` is records per wall second in the step that begins `h` steps after `time`, at `levels[q]` (rising,
    between 0 and 1); `last_rps` is the rate of the step before `time`, None while unknown. `epoch` is the fencing
    number of the server that made it (ms since 1970 at which it took over; the higher one holds). `model`, `version`
    and `alias` name the model, `history_steps` is how many steps it had seen.
    """

    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    step_s: Span
    levels: list[float]
    quantiles: Annotated[list[list[float]], Bounds(0, MOST)]
    model: str
    version: str
    alias: str
    kind: str
    history_steps: Count
    epoch: Millis
    last_rps: Rate | None = None
    schema: int = SCHEMA

    def check(self) -> None:
        """Check the shapes and the order of levels and quantiles.

        Raises:
            MessageError: no steps or no levels, levels that do not rise strictly between 0 and 1, a row with another
                number of values than levels, or quantiles that fall within a row.
        """
        if not self.quantiles or not self.levels:
            raise MessageError("a forecast without steps or without levels")
        if not all(a < b for a, b in itertools.pairwise([0.0, *self.levels, 1.0])):
            raise MessageError(f"levels={short_repr(self.levels)}: they must rise between 0 and 1")
        for step, row in enumerate(self.quantiles):
            if len(row) != len(self.levels):
                raise MessageError(f"quantiles[{step}] has {len(row)} values for {len(self.levels)} levels")
            if any(a > b for a, b in itertools.pairwise(row)):
                raise MessageError(f"quantiles[{step}]={short_repr(row)}: they must rise")


@dataclass(frozen=True)
class Decision:
    """One evaluation of a policy, also one that changes nothing; `inputs` alone determine what follows from them.

    `mode` is "act" or "observe" (a recommendation). `executors` is how many are wanted, `codes` are the reasons as
    fixed words, `reason` is the same for a person. `expected` holds the policy's prediction: `capacity_rps` and
    `utilisation` (a share), or nothing.
    """

    id: str
    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    mode: Annotated[str, OneOf(_MODES)]
    policy: str
    executors: Count
    reason: str
    codes: list[str]
    inputs: dict[str, Any]
    expected: dict[str, Any]
    admission_rps: Rate | None = None
    replay_rps: Rate | None = None
    schema: int = SCHEMA


@dataclass(frozen=True)
class Outcome:
    """What an applied or refused decision really did. Times are wall times; None where it did not come to that.

    `status`: confirmed (executors are as decided, and for a scale-up a batch has used them), ineffective (not within
    the time allowed), refused (with the reason; executors stay), failed (the cluster raised an error). `observed`
    holds, as far as known, `waited_s` (until the executors came, or so far), `censored` (they have not come), `late`
    (they came after `patience_s`), `patience_s`, `no_room` (the queue of YARN that had none for them at first),
    `asked_before` (by a raise that this one lowers), `lag_records_` and `processed_rps_` ending in `before`, `after`.
    """

    decision_id: str
    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    status: Annotated[str, OneOf(("confirmed", "ineffective", "refused", "failed"))]
    reason: str
    executors_before: Count | None = None
    executors_after: Count | None = None
    target: Count | None = None
    decided_at: Time | None = None
    applied_at: Time | None = None
    confirmed_at: Time | None = None
    useful_at: Time | None = None
    expected: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA


@dataclass(frozen=True)
class Control:
    """To a job's agent: its mode, and the login `by` which, or a replay's clock (`trace_start` at `wall_start`)."""

    job: JobName
    wall_time: Time
    mode: Annotated[str, OneOf(_WORDS)] | None = None
    wall_start: Time | None = None
    trace_start: Time | None = None
    time_scale: Scale | None = None
    by: str | None = None
    schema: int = SCHEMA

    MODES: ClassVar = _WORDS


@dataclass(frozen=True)
class Heartbeat:
    """Says at most 10 s apart that who forecasts (`by="serving"`) or decides (`by="autoscaler"`) for a job is running.

    A decision or forecast that stays the same is not sent again: the heartbeat confirms it, and its age counts from
    `wall_time` here. `standing` is the id of the decision, or the forecast's `epoch` as text; None while there is none,
    and after half a minute in which nothing could be decided. `since` is the wall time at which it was made,
    `executors` what a standing decision asks for, `repeats` how many evaluations have come to the same since.
    """

    job: JobName
    by: Annotated[str, OneOf(("serving", "autoscaler"))]
    time: Time
    wall_time: Time
    time_scale: Scale
    standing: str | None = None
    since: Time | None = None
    executors: Count | None = None
    repeats: Count | None = None
    schema: int = SCHEMA


@dataclass(frozen=True)
class ContractText:
    """A job's contract (latency target and executor bounds) as JSON `text`, accepted at `time`; `hash` is its key."""

    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    hash: str
    text: str
    schema: int = SCHEMA

    KEY: ClassVar = "hash"


@dataclass(frozen=True)
class Reject:
    """A record that was refused: where it lies, who refused it (`by`), why, and the first characters of its value."""

    topic: str
    partition: Count
    offset: Count
    by: str
    reason: str
    value: str
    wall_time: Time
    schema: int = SCHEMA

    @classmethod
    def of(
        cls, topic: str, partition: int, offset: int, by: str, reason: object, raw: bytes | bytearray | str | None,
        now: float,
    ) -> Reject:  # fmt: skip
        """Build the reject of the record at this place, refused by the component `by`; `now` is wall epoch seconds.

        `topic` is named without the prefix. `raw` is the record's value; bytes that are not UTF-8 are replaced, None
        becomes "". It and the reason are cut to REPEATED (2000) characters each.
        """
        text = raw.decode("utf-8", "replace") if isinstance(raw, (bytes, bytearray)) else raw or ""
        kept = text[:REPEATED].encode("utf-8", "replace").decode()
        return cls(topic, int(partition), int(offset), by, str(reason)[:REPEATED], kept, now)


@dataclass(frozen=True)
class PoolWant:
    """What a job asks of its pool: the autoscaler sends it at each evaluation, and divides the pool by it.

    `executors` are those that its policy asks for now, for live records, `needed` those that it is on the way to,
    `least` those of its contract, `running` those there at the wall time `seen_at` (None: `wall_time`), `cores` of
    each. `late_s` are the late seconds to expect with 0, 1, ... executors, `budget_left` the share of its promise's
    budget that is left. Until the wall times `until` its forecast asks for `ahead` executors, its replays for `replay`.
    """

    job: JobName
    time: Time
    wall_time: Time
    time_scale: Scale
    pool: JobName
    executors: Executors
    running: Count
    cores: Count
    least: Executors
    late_s: Annotated[list[float], Bounds(0, MOST)]
    budget_left: float
    until: Annotated[list[float], Bounds(0, LATEST_S)]
    ahead: Annotated[list[int], Bounds(0, 10_000)]
    replay: Count = 0
    needed: Count = 0
    seen_at: Time | None = None
    schema: int = SCHEMA

    def check(self) -> None:
        """Check that there are late seconds, and an executor count for each of rising times; MessageError if not."""
        if not self.late_s or len(self.until) != len(self.ahead) or sorted({*self.until}) != self.until:
            what = "rising times, one for each of `ahead`, and late seconds"
            raise MessageError(f"until={short_repr(self.until)}: {what}")


Message = (
    MetricSample | Forecast | Decision | Outcome | Control | Heartbeat | ContractText | Reject | ReplayOrder
    | ReplayProgress | PoolWant
)  # fmt: skip
