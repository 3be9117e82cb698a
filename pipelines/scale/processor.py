"""The keyed step of the autoscaler query: one job's records in, decisions and rejects out."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.contract import Contract
from models.policy.live.evaluation import evaluate
from models.policy.live.memory import Memory, fresh, saw_batch, saw_forecast, saw_interval
from pipelines.scale import ears
from pipelines.scale.agents import Clock, decider
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.courier import Brought
from tidecast.messages import Decision, Forecast, MessageError, MetricSample, Reject, decode, encode

if TYPE_CHECKING:
    import pandas as pd

OUTPUT = "topic string, key string, value string"
WATCHDOG_MS = 2000


class Learned(NamedTuple):
    """What workers find of what was learned: agents of a learned policy, and the peaks that policies hear."""

    agents: Brought | None = None
    ears: Brought | None = None


NOTHING = Learned()


class Scaler:
    """One job's part of the autoscaler, without Spark: `take` records, `decide`, `watch` for silence."""

    def __init__(
        self, job: str, contract: Contract | None, policy: str, mode: str, learned: Learned = NOTHING,
        store: StoreForecasts | None = None,
    ) -> None:  # fmt: skip
        self.job, self.contract, self.policy, self.mode = job, contract, policy, mode
        self.learned, self.store = learned, store
        self._used: dict[str, Any] = {}

    def take(self, memory: Memory, rows: list[dict[str, Any]], now: float) -> tuple[Memory, bool, list[Reject]]:
        """Memory after the records, whether a second of metrics was among them, and what could not be accepted."""
        messages, rejects = [], []
        for row in rows:
            try:
                messages.append(self._accepted(row, now))
            except MessageError as error:
                rejects.append(
                    Reject(
                        row["topic"],
                        int(row["partition"]),
                        int(row["offset"]),
                        "autoscaler",
                        str(error),
                        row["value"] or "",
                        now,
                    )
                )
        ticked = False
        for message in sorted(messages, key=lambda m: m.wall_time):
            if isinstance(message, Forecast):
                memory = saw_forecast(memory, dataclasses.asdict(message))
            elif message.kind == "batch":
                memory = saw_batch(memory, dataclasses.asdict(message), self._known())
            elif message.executors is not None:  # back-dated history says nothing about now
                memory, ticked = saw_interval(memory, dataclasses.asdict(message)), True
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
        policy, version, stand_in = decider(self.policy, contract, clock, self.learned.agents)
        heard = ears.of_version(self.learned.ears, contract, memory.forecast.get("version"))
        memory, seen, made = evaluate(memory, now, contract, policy, version, stand_in, heard)
        if seen is None or made is None:
            return memory, None
        inputs = {
            **seen.inputs(),
            "metric_wall_time": memory.metric_at,
            "capacity_rps": made.current_capacity_rps,
            "needed_observed": made.needed_observed,
            "needed_forecast": made.needed_forecast,
            "forecast_version": memory.forecast.get("version") if made.needed_forecast is not None else None,
            "contract": contract.model_dump(mode="json"),
            **({"forecast_read": self._used} if self.store is not None else {}),
        }
        expected = {"capacity_rps": made.capacity_rps, "utilisation": made.utilisation}
        decision = self._record(memory, now, made.executors, made.reason, made.codes, inputs, expected)
        return memory, dataclasses.replace(decision, policy=policy.name)

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

    def _accepted(self, row: dict[str, Any], now: float) -> MetricSample | Forecast:
        message: MetricSample | Forecast
        if row["topic"] == "metrics":
            message = decode(MetricSample, row["value"], now)
        else:
            message = decode(Forecast, row["value"], now)
        if message.job != self.job:
            raise MessageError(f"job={message.job!r} under the key {self.job!r}; key a record by its job")
        if self.contract is None:
            raise MessageError(f"job {self.job!r} has no contract; add configs/contracts/{self.job}.yaml")
        return message

    def _known(self) -> Contract:
        assert self.contract is not None, "records of a job without a contract are rejected before they get here"
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


def stateful_processor(
    contracts: dict[str, Contract], policy: str, mode: str, learned: Learned = NOTHING,
    store: StoreForecasts | None = None,
) -> Any:  # fmt: skip
    """The Spark `StatefulProcessor` around `Scaler`: memory as JSON in a value state, a timer as the watchdog."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class AutoscalerProcessor(StatefulProcessor):  # Spark calls by these names
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.state = handle.getValueState("memory", "json string")

        def handleInputRows(
            self, key: tuple[str], rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            """One job's new records into its state; the decision and the rejects out of it, as rows for Kafka."""
            now = time.time()
            scaler = Scaler(key[0], contracts.get(key[0]), policy, mode, learned, store)
            records = [record for frame in rows for record in frame.to_dict("records")]
            memory, ticked, rejects = scaler.take(self._memory(scaler), records, now)
            out: list[tuple[str, str, bytes]] = [("rejects", r.topic, encode(r)) for r in rejects]
            if ticked:
                memory = scaler.look(memory, timerValues.getCurrentProcessingTimeInMs() / 1000)
                memory, decision = scaler.decide(memory, now)
                out += [("decisions", scaler.job, encode(decision))] if decision else []
            if scaler.contract is not None:
                self.state.update((memory.to_json(),))
                self._rearm(timerValues)
            yield _frame(out)

        def handleExpiredTimer(
            self, key: tuple[str], timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            scaler = Scaler(key[0], contracts.get(key[0]), policy, mode, learned)
            decision = scaler.watch(self._memory(scaler), time.time())
            self._rearm(timerValues)
            yield _frame([("decisions", scaler.job, encode(decision))] if decision else [])

        def close(self) -> None:
            pass

        def _memory(self, scaler: Scaler) -> Memory:
            kept = self.state.get() if self.state.exists() else None
            if kept is not None:
                return Memory.from_json(kept[0])
            return fresh(scaler.contract or Contract(job=scaler.job))

        def _rearm(self, timers: Any) -> None:
            for old in self.handle.listTimers():  # else every batch adds one
                self.handle.deleteTimer(old)
            self.handle.registerTimer(timers.getCurrentProcessingTimeInMs() + WATCHDOG_MS)

    def _frame(rows: list[tuple[str, str, bytes]]) -> pd.DataFrame:
        return pd.DataFrame([(t, k, v.decode()) for t, k, v in rows], columns=["topic", "key", "value"])

    return AutoscalerProcessor()
