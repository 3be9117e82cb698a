"""The keyed step of the autoscaler query: one job's records in; decisions, signs of life and rejects out."""

from __future__ import annotations

import dataclasses
from typing import Any

from configs.contract import Contract
from models.policy.live.evaluation import evaluate
from models.policy.live.memory import (
    Memory,
    ahead,
    fresh,
    saw_batch,
    saw_forecast,
    saw_heartbeat,
    saw_interval,
    with_contract,
)
from models.policy.live.standing import Standing, alike, repeated, reported
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.learned import NOTHING, Clock, Learned
from tidecast.messages import (
    Decision,
    Forecast,
    Heartbeat,
    Message,
    MessageError,
    MetricSample,
    Reject,
    keyed,
)  # fmt: skip

BEAT_S = 7.0
"""Between two signs of life; with the watchdog's time and a slow micro-batch on top still under 10 s."""
UNKNOWN_S = 600.0
"""A job without a contract is rejected once in so many seconds; what was known of it is forgotten as late."""

_KINDS: dict[str, Any] = {"metrics": MetricSample, "forecasts": Forecast, "heartbeats": Heartbeat}


class Scaler:
    """One job's part of the autoscaler, without Spark: `step` from what is remembered and came to what is to be sent.

    A step is to `take` records, to `decide` if a second of metrics was among them, else to `watch` for silence, and to
    write what does not come to the same as the standing decision.
    """

    def __init__(
        self, job: str, contract: Contract | None, policy: str, mode: str, learned: Learned = NOTHING,
        store: StoreForecasts | None = None,
    ) -> None:  # fmt: skip
        self.job, self.contract, self.policy, self.mode = job, contract, policy, mode
        self.learned, self.store = learned, store
        self._used: dict[str, Any] = {}

    def step(
        self, memory: Memory | None, rows: list[dict[str, Any]], now: float, batch_s: float
    ) -> tuple[Memory | None, list[tuple[str, str, Message]]]:
        """What is remembered then, None for nothing, and what is to be sent: topic, key and message.

        Args:
            memory: of the job, None before the first record.
            rows: records of the topics that are followed.
            now: wall time.
            batch_s: wall time at which the micro-batch was planned; the same if it is tried again.
        """
        if self.contract is None:
            return self._unknown(memory, rows, now)
        memory, ticked, rejects = self.take(with_contract(memory or fresh(self.contract), self.contract), rows, now)
        decision: Decision | None = None
        if ticked:
            memory, decision = self.decide(self.look(memory, batch_s), now)
        else:
            decision = self.watch(memory, now)
        memory, written = self._written(memory, decision, now)
        return memory, [*(("rejects", reject.topic, reject) for reject in rejects), *written]

    def take(self, memory: Memory, rows: list[dict[str, Any]], now: float) -> tuple[Memory, bool, list[Reject]]:
        """Memory after the records, whether a second of metrics was among them, and what could not be accepted."""
        messages, rejects = [], []
        for row in rows:
            try:
                messages.append((self._accepted(row, now), row))
            except MessageError as error:
                rejects.append(_reject(row, error, now))
        ticked = False
        for message, row in sorted(messages, key=lambda one: one[0].wall_time):
            fields = dataclasses.asdict(message)
            if isinstance(message, Forecast):
                if ahead(memory, fields):
                    reason = f"time={message.time}: the job has come to {memory.metric_time}, nobody forecasts beyond"
                    rejects.append(_reject(row, reason, now))
                memory = saw_forecast(memory, fields)
            elif isinstance(message, Heartbeat):
                memory = saw_heartbeat(memory, fields)
            elif message.kind == "batch":
                memory = saw_batch(memory, fields, self._known())
            elif message.executors is not None:  # back-dated history says nothing about now
                memory, ticked = saw_interval(memory, fields), True
        return memory, ticked, rejects

    def look(self, memory: Memory, batch_s: float) -> Memory:
        """Memory with the forecast that the store holds as of the micro-batch's time; as it is without a store."""
        if self.store is None:
            return memory
        reading = self.store.read(self.job, batch_s)
        self._used = reading.used
        if reading.forecast is not None:
            return saw_forecast(memory, reading.forecast)
        # A store that answers "none" is believed; one that cannot be asked leaves what is held to grow old.
        return dataclasses.replace(memory, forecast={}) if "as_of" in reading.used else memory

    def decide(self, memory: Memory, now: float) -> tuple[Memory, Decision | None]:
        """The memory and the record of one evaluation; None before the job has shown itself."""
        contract = self._known()
        clock = Clock(now, memory.job_s(now), memory.time_scale)
        decider = self.learned.decider(self.policy, contract, clock)
        calibrator = self.learned.calibrator(contract, memory.forecast.get("version"))
        memory, seen, made = evaluate(memory, now, contract, *decider, calibrator)
        if seen is None or made is None:
            return memory, None
        inputs = {
            **seen.inputs(),
            "metric_wall_time": memory.metric_at,
            "capacity_rps": made.current_capacity_rps,
            "needed_observed": made.needed_observed,
            "needed_forecast": made.needed_forecast,
            "forecast_version": memory.forecast.get("version") if made.needed_forecast is not None else None,
            "contract_hash": contract.hash,
            **({"forecast_read": self._used} if self.store is not None else {}),
        }
        expected = {"capacity_rps": made.capacity_rps, "utilisation": made.utilisation}
        decision = self._record(memory, now, made.executors, made.reason, made.codes, inputs, expected)
        return memory, dataclasses.replace(decision, policy=decider.policy.name)

    def watch(self, memory: Memory, now: float) -> Decision | None:
        """A hold that says so when a known job's metrics have stopped coming."""
        if memory.metric_at is None or memory.target is None:
            return None
        silent = now - memory.metric_at
        if silent <= self._known().planning.metrics_age_s:
            return None
        reason = f"hold: no metrics for {silent:.0f} s; without an observation nothing is changed"
        return self._record(
            memory, now, memory.target, reason, ["hold", "no_metrics"], {"metric_wall_time": memory.metric_at}, {}
        )

    def _written(
        self, memory: Memory, decision: Decision | None, now: float
    ) -> tuple[Memory, list[tuple[str, str, Message]]]:
        """The decision unless it comes to the same as the one that stands, and a sign of life where one is due."""
        before, closed = memory.standing, None
        out: list[tuple[str, str, Message]] = []
        if decision is not None:
            memory = dataclasses.replace(memory, standing=self._repeated(memory, decision, now))
            if memory.standing is None:
                out.append(("decisions", self.job, decision))
                standing = Standing(decision.id, now, decision.executors, self._alike(memory, decision))
                memory = dataclasses.replace(memory, standing=standing)
                # What came to the same as the decision before is reported before another takes its place.
                closed = before if before is not None and before.repeats > before.vouched else None
        due = memory.beat_at is None or not 0 <= now - memory.beat_at < BEAT_S
        if closed is None and not due:
            return memory, out
        out.append(("heartbeats", self.job, self._heartbeat(memory, closed or memory.standing, now)))
        return dataclasses.replace(memory, beat_at=now, standing=reported(memory.standing)), out

    def _repeated(self, memory: Memory, decision: Decision, now: float) -> Standing | None:
        acts = memory.mode in (None, "act") and "no_metrics" not in decision.codes
        reached = memory.executors == decision.executors or not acts
        return repeated(memory.standing, now, decision.codes, self._alike(memory, decision), reached)

    def _alike(self, memory: Memory, decision: Decision) -> str:
        received = memory.forecast if decision.inputs.get("ahead") else {}
        return alike(
            decision.codes, decision.mode, decision.policy, decision.inputs.get("version"), decision.executors,
            memory.executors, self._known().hash, received.get("epoch"), received.get("time"),
        )  # fmt: skip

    def _heartbeat(self, memory: Memory, standing: Standing | None, now: float) -> Heartbeat:
        time_s = now if memory.metric_at is None else memory.job_s(now)
        beat = Heartbeat(self.job, "autoscaler", time_s, now, memory.time_scale)
        if standing is None:
            return beat
        return dataclasses.replace(
            beat, standing=standing.id, since=standing.since, executors=standing.executors, repeats=standing.repeats
        )

    def _unknown(
        self, memory: Memory | None, rows: list[dict[str, Any]], now: float
    ) -> tuple[Memory | None, list[tuple[str, str, Message]]]:
        """Of a job without a contract nothing is taken; it is rejected, not once a record but once in a while."""
        if memory is not None and memory.unknown_at is not None:
            return (memory, []) if now - memory.unknown_at < UNKNOWN_S else (None, [])
        reason = f"job {self.job!r} has no contract; add configs/contracts/{self.job}.yaml. Its records are left."
        first = [row for row in rows if row["topic"] == "metrics"][:1]
        memory = dataclasses.replace(memory or fresh(Contract(job=self.job)), unknown_at=now)
        return memory, [("rejects", row["topic"], _reject(row, reason, now)) for row in first]

    def _accepted(self, row: dict[str, Any], now: float) -> MetricSample | Forecast | Heartbeat:
        message: MetricSample | Forecast | Heartbeat = keyed(_KINDS[row["topic"]], self.job, row["value"], now)
        return message

    def _known(self) -> Contract:
        assert self.contract is not None, "a job without a contract is left alone before it gets here"
        return self.contract

    def _record(
        self, memory: Memory, now: float, executors: int, reason: str, codes: list[str],
        inputs: dict[str, Any], expected: dict[str, Any],
    ) -> Decision:  # fmt: skip
        # The id follows from the metric and the code, so that a retried micro-batch writes the same decision twice.
        stamp = int((memory.metric_at or 0) * 1000) if "no_metrics" not in codes else int(now * 1000)
        return Decision(
            id=f"{self.job}-{stamp}", job=self.job, time=memory.job_s(now), wall_time=now, time_scale=memory.time_scale,
            mode=self.mode, policy=self.policy, executors=executors, reason=reason, codes=codes,
            inputs=inputs, expected=expected,
        )  # fmt: skip


def _reject(row: dict[str, Any], reason: object, now: float) -> Reject:
    return Reject.of(row["topic"], row["partition"], row["offset"], "autoscaler", reason, row["value"], now)
