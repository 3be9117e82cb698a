"""`Scaler` as Spark runs it: the memory as JSON in a keyed state, a timer that fires when no records come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from models.policy.copies import copy_with
from models.policy.live.memory import Memory
from pipelines.kafka.signing import Signer
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.contracts import AcceptedContracts
from pipelines.scale.learned import NOTHING, Learned
from pipelines.scale.pool.grants import Grants
from pipelines.scale.processor import UNKNOWN_S, Scaler
from pipelines.scale.written import reject_of
from tidecast.messages import encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

OUTPUT = "topic string, key string, value string, signature string"
UNSIGNED = Signer()
Clock = Callable[[list[dict[str, Any]]], float]
"""The time of a step, epoch seconds, with these records of its job."""
WATCHDOG_MS = 2000  # ms within which a job with a contract is called, if no records come


class Stepped(NamedTuple):
    """What a step of a job came to.

    Attributes:
        kept: its memory as JSON; None: it is forgotten.
        sent: topic (without prefix), key and value (JSON) of each message.
        timer_ms: epoch milliseconds at which it is to be called, if no records come; None where it is forgotten.
        stood_ms: which timer stands already; None where none does, or it is not known.
    """

    kept: str | None
    sent: list[tuple[str, str, str]]
    timer_ms: int | None
    stood_ms: int | None


def next_timer(stood_ms: int | None, planned_ms: int, wait_ms: int) -> int:
    """Return when a job is to be called that is silent from now on: not before now, and within `wait_ms`.

    A timer that stands is kept where it does, as every change of one costs two calls from Python to Spark.
    """
    if stood_ms is not None and planned_ms < stood_ms <= planned_ms + wait_ms:
        return stood_ms
    return planned_ms + wait_ms


def step_from(
    scaler: Scaler, kept: str | None, rows: list[dict[str, Any]], now: float, batch_s: float
) -> Stepped:  # fmt: skip
    """Run one step of a job from its memory as JSON; the other arguments are those of `Scaler.step`.

    A memory that cannot be gone on with (another release's, or a damaged one) is told on stderr and begun anew: what is
    forgotten is learned again within minutes, and a task that fails would stop the scaling of every job. Records with
    which no step can be made, from no memory either, are told, too, and rejected: the memory goes on without them.

    Raises:
        Exception: what the step raised, where one without a memory and without records raises, too.
    """
    failure, states = None, [kept] if kept is None else [kept, None]
    for given in (rows, []):
        for state in states:
            try:
                done = _stepped(scaler, None if state is None else Memory.from_json(state), given, now, batch_s)
            except Exception as error:
                if failure is None or given:  # records are rejected for what is wrong with them, not with the memory
                    failure = error
                continue
            if failure is None:
                return done
            problem = f"{type(failure).__name__}: {failure}"
            anew = "" if state == kept else "its state is begun anew: "
            rejects = [] if given else [reject_of(row, problem, now) for row in rows]
            lost = f"{len(rejects)} records are rejected: " if rejects else ""
            print(f"autoscaler: {scaler.job}: {anew}{lost}{problem:.300}", file=sys.stderr, flush=True)
            return done._replace(sent=[*(("rejects", r.topic, encode(r).decode()) for r in rejects), *done.sent])
    assert failure is not None
    raise failure


def _stepped(
    scaler: Scaler, memory: Memory | None, rows: list[dict[str, Any]], now: float, batch_s: float
) -> Stepped:  # fmt: skip
    after, messages = scaler.step(memory, rows, now, batch_s)
    sent = [(topic, name, encode(message).decode()) for topic, name, message in messages]
    stood_ms = None if memory is None else memory.timer_ms
    if after is None:
        return Stepped(None, sent, None, stood_ms)
    wait_ms = int(UNKNOWN_S * 1000) if scaler.unknown else WATCHDOG_MS
    timer_ms = next_timer(stood_ms, round(batch_s * 1000), wait_ms)
    return Stepped(copy_with(after, timer_ms=timer_ms).to_json(), sent, timer_ms, stood_ms)


def wall_time(rows: list[dict[str, Any]]) -> float:
    """Return what the clock shows, whatever the records say."""
    return time.time()


def add_scaling_step(source: DataFrame, processor: Any) -> DataFrame:
    """Return what a processor of `make_stateful_processor` sends, as OUTPUT, for records with the key `key`."""
    return source.groupBy("key").transformWithState(processor, OUTPUT, "Update", "ProcessingTime")


def make_stateful_processor(
    accepted: AcceptedContracts, policy: str, mode: str, learned: Learned = NOTHING,
    store: StoreForecasts | None = None, signer: Signer = UNSIGNED, grants: Grants | None = None,
    clock: Clock = wall_time,
) -> Any:  # fmt: skip
    """Build the Spark `StatefulProcessor` that runs `Scaler` for each key (job); its output columns are OUTPUT.

    These are topic (without prefix), key, value (JSON) and signature (null where it has none). Its state is the memory
    as JSON. Without new records a timer calls it within WATCHDOG_MS (2 s), or UNKNOWN_S (600 s) where the job has no
    contract (latency target and executor bounds). A state that this release cannot read is told on stderr, and the
    job begins anew.

    Args:
        accepted: where contracts are read, at every micro-batch.
        policy: name of the policy.
        mode: "act" or "observe", for the decisions.
        learned: synced agents and calibrators.
        store: where forecasts are read; None takes them from the topic.
        signer: with the keys of the jobs.
        grants: what jobs were granted of their pools; None: there are none.
        clock: the time of a step; another one where records of the past are decided on.
    """
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    message = Row("topic", "key", "value", "signature")

    class AutoscalerProcessor(StatefulProcessor):  # Spark calls by these names
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.state = handle.getValueState("memory", "json string")

        def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
            """Run one step with a job's new records, update its state, and yield what to send as rows of OUTPUT."""
            return self._step(key[0], [row.asDict() for row in rows], timerValues)

        def handleExpiredTimer(self, key: tuple[str], timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
            """Run one step of a silent job; the timer that fired is deleted by Spark."""
            return self._step(key[0], [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

        def close(self) -> None:
            pass

        def _step(
            self, job: str, rows: list[dict[str, Any]], timers: Any, fired_ms: int | None = None
        ) -> Iterator[Row]:
            planned_ms, held = timers.getCurrentProcessingTimeInMs(), self.state.get()
            granted = None if grants is None else grants.of(job)
            scaler = Scaler(job, accepted.of(job), policy, mode, learned, store, granted)
            done = step_from(scaler, None if held is None else held[0], rows, clock(rows), planned_ms / 1000)
            if done.kept is None:
                self.state.clear()
            else:
                self.state.update((done.kept,))
            if done.timer_ms != done.stood_ms or done.kept is None:
                self._set_timer(done, held is not None, fired_ms)
            for one in done.sent:
                yield message(*one, _signature(signer, job, *one))

        def _set_timer(self, done: Stepped, was_known: bool, fired_ms: int | None) -> None:
            stood: Iterable[int] = () if done.stood_ms is None else (done.stood_ms,)
            if done.stood_ms is None and was_known:  # kept by an earlier release, or damaged
                stood = list(self.handle.listTimers())
            for old in stood:
                if old != fired_ms:
                    self.handle.deleteTimer(old)
            if done.timer_ms is not None:
                self.handle.registerTimer(done.timer_ms)

    return AutoscalerProcessor()


def _signature(signer: Signer, job: str, topic: str, name: str, value: str) -> str | None:
    made = signer.sign(topic, name, value.encode(), job)
    return None if made is None else made.decode()
