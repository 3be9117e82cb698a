"""`Scaler` as Spark runs it: the memory as JSON in a keyed state, a timer that fires when no records come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from models.policy.live.memory import Memory
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.contracts import AcceptedContracts
from pipelines.scale.learned import NOTHING, Learned
from pipelines.scale.processor import UNKNOWN_S, Scaler
from tidecast.messages import encode

if TYPE_CHECKING:
    import pandas as pd

OUTPUT = "topic string, key string, value string"
WATCHDOG_MS = 2000  # ms without records after which a job with a contract is called


def read_memory(job: str, kept: str) -> Memory | None:
    """Read a job's memory from its state; None, told on stderr, where another release wrote what this one cannot read.

    What is forgotten is learned again within minutes; a task that fails would stop the scaling of every job.
    """
    try:
        return Memory.from_json(kept)
    except ValueError as error:
        print(f"autoscaler: {job}: its state is begun anew: {error}", file=sys.stderr, flush=True)
        return None


def make_stateful_processor(
    accepted: AcceptedContracts, policy: str, mode: str, learned: Learned = NOTHING, store: StoreForecasts | None = None
) -> Any:
    """Build the Spark `StatefulProcessor` that runs `Scaler` for each key (job); its output columns are OUTPUT.

    These are topic (without prefix), key and value (JSON). Its state is the memory as JSON. Without new records a timer
    calls it after WATCHDOG_MS (2 s), or after UNKNOWN_S (600 s) where the job has no contract (latency target and
    executor bounds). A state that this release cannot read is told on stderr, and the job begins anew.

    Args:
        accepted: where contracts are read, at every micro-batch.
        policy: name of the policy.
        mode: "act" or "observe", for the decisions.
        learned: synced agents and calibrators.
        store: where forecasts are read; None takes them from the topic.
    """
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class AutoscalerProcessor(StatefulProcessor):  # Spark calls by these names
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.state = handle.getValueState("memory", "json string")

        def handleInputRows(
            self, key: tuple[str], rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            """Run one step with a job's new records, update its state, and yield what to send as rows of OUTPUT."""
            yield self._step(key[0], [record for frame in rows for record in frame.to_dict("records")], timerValues)

        def handleExpiredTimer(
            self, key: tuple[str], timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield self._step(key[0], [], timerValues)

        def close(self) -> None:
            pass

        def _step(self, job: str, rows: list[dict[str, Any]], timers: Any) -> pd.DataFrame:
            planned_ms, contract = timers.getCurrentProcessingTimeInMs(), accepted.of(job)
            scaler = Scaler(job, contract, policy, mode, learned, store)
            kept = self.state.get() if self.state.exists() else None
            memory = None if kept is None else read_memory(job, kept[0])
            memory, messages = scaler.step(memory, rows, time.time(), planned_ms / 1000)
            for old in self.handle.listTimers():  # else every batch adds one
                self.handle.deleteTimer(old)
            if memory is None:
                self.state.clear()
            else:
                self.state.update((memory.to_json(),))
                self.handle.registerTimer(planned_ms + (WATCHDOG_MS if contract else int(UNKNOWN_S * 1000)))
            sent = [(topic, name, encode(message).decode()) for topic, name, message in messages]
            return pd.DataFrame(sent, columns=["topic", "key", "value"])

    return AutoscalerProcessor()
