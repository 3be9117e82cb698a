"""`Scaler` as Spark runs it: the memory as JSON in a keyed state, a timer that fires when no records come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from models.policy.live.memory import Memory
from pipelines.kafka.signing import Signer
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.contracts import AcceptedContracts
from pipelines.scale.learned import NOTHING, Learned
from pipelines.scale.processor import UNKNOWN_S, Scaler
from tidecast.messages import encode

if TYPE_CHECKING:
    import pandas as pd

OUTPUT = "topic string, key string, value string, signature string"
UNSIGNED = Signer()
WATCHDOG_MS = 2000  # ms without records after which a job with a contract is called


class Stepped(NamedTuple):
    """What a step of a job came to.

    Attributes:
        kept: its memory as JSON; None: it is forgotten.
        sent: topic (without prefix), key and value (JSON) of each message.
    """

    kept: str | None
    sent: list[tuple[str, str, str]]


def step_from(
    scaler: Scaler, kept: str | None, rows: list[dict[str, Any]], now: float, batch_s: float
) -> Stepped:  # fmt: skip
    """Run one step of a job from its memory as JSON; the other arguments are those of `Scaler.step`.

    A memory that cannot be gone on with (another release's, or a damaged one) is told on stderr and begun anew: what is
    forgotten is learned again within minutes, and a task that fails would stop the scaling of every job.

    Raises:
        Exception: whatever a step without a memory raises.
    """
    if kept is not None:
        try:
            return _stepped(scaler, Memory.from_json(kept), rows, now, batch_s)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            print(f"autoscaler: {scaler.job}: its state is begun anew: {problem:.300}", file=sys.stderr, flush=True)
    return _stepped(scaler, None, rows, now, batch_s)


def _stepped(
    scaler: Scaler, memory: Memory | None, rows: list[dict[str, Any]], now: float, batch_s: float
) -> Stepped:  # fmt: skip
    after, messages = scaler.step(memory, rows, now, batch_s)
    sent = [(topic, name, encode(message).decode()) for topic, name, message in messages]
    return Stepped(None if after is None else after.to_json(), sent)


def make_stateful_processor(
    accepted: AcceptedContracts, policy: str, mode: str, learned: Learned = NOTHING,
    store: StoreForecasts | None = None, signer: Signer = UNSIGNED,
) -> Any:  # fmt: skip
    """Build the Spark `StatefulProcessor` that runs `Scaler` for each key (job); its output columns are OUTPUT.

    These are topic (without prefix), key, value (JSON) and signature (null where it has none). Its state is the memory
    as JSON. Without new records a timer calls it after WATCHDOG_MS (2 s), or after UNKNOWN_S (600 s) where the job has
    no contract (latency target and executor bounds). A state that this release cannot read is told on stderr, and the
    job begins anew.

    Args:
        accepted: where contracts are read, at every micro-batch.
        policy: name of the policy.
        mode: "act" or "observe", for the decisions.
        learned: synced agents and calibrators.
        store: where forecasts are read; None takes them from the topic.
        signer: with the keys of the jobs.
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
            held = self.state.get() if self.state.exists() else None
            done = step_from(scaler, None if held is None else held[0], rows, time.time(), planned_ms / 1000)
            for old in self.handle.listTimers():  # else every batch adds one
                self.handle.deleteTimer(old)
            if done.kept is None:
                self.state.clear()
            else:
                self.state.update((done.kept,))
                self.handle.registerTimer(planned_ms + (WATCHDOG_MS if contract else int(UNKNOWN_S * 1000)))
            return pd.DataFrame(
                [(*one, _signature(signer, job, *one)) for one in done.sent],
                columns=["topic", "key", "value", "signature"],
            )

    return AutoscalerProcessor()


def _signature(signer: Signer, job: str, topic: str, name: str, value: str) -> str | None:
    made = signer.sign(topic, name, value.encode(), job)
    return None if made is None else made.decode()
