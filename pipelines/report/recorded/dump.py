"""What a run said on the topics, written to its folder as JSON lines."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from configs.sections import Kafka
from pipelines.kafka.broker import read_all
from tidecast.messages import (
    ContractText,
    Decision,
    Forecast,
    Heartbeat,
    MessageError,
    MetricSample,
    Outcome,
    Reject,
    decode,
    encode,
    keyed,
)  # fmt: skip

DUMPED: dict[str, Any] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome, "rejects": Reject,
    "heartbeats": Heartbeat, "contracts": ContractText,
}  # fmt: skip


def dump(kafka: Kafka, run_dir: Path, since_wall: float) -> None:
    """Write `<topic>.jsonl` for every topic of `DUMPED`.

    A record belongs to the run if its `wall_time` is not before `since_wall` (epoch seconds). Records that cannot be
    accepted are left out: whoever followed the topic has put them on `rejects`.

    Raises:
        BrokerError: the broker or a topic is missing.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    for topic, kind in DUMPED.items():
        with (run_dir / f"{topic}.jsonl").open("wb") as file:
            for record in read_all(kafka, topic):
                with suppress(MessageError):
                    seen = (record.value, time.time())
                    message = decode(kind, *seen) if topic == "rejects" else keyed(kind, record.key, *seen)
                    if message.wall_time >= since_wall:
                        file.write(encode(message) + b"\n")
