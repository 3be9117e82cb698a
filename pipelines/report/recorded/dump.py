"""What a run said on the topics, written to its folder as JSON lines."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from configs.sections import Kafka
from pipelines.kafka.broker import read_records
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
    decode_keyed,
    encode,
)  # fmt: skip

DUMPED: dict[str, Any] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome, "rejects": Reject,
    "heartbeats": Heartbeat, "contracts": ContractText,
}  # fmt: skip


def dump_topics(kafka: Kafka, run_dir: Path, since_wall: float) -> None:
    """Write the records of every topic of `DUMPED` to `<topic>.jsonl` in a run's folder, replacing older files.

    Reads each topic from its first record to the end that it has then; records that are no valid message are left out.

    Args:
        kafka: where the broker is.
        run_dir: is made if need be.
        since_wall: epoch seconds; records with an older `wall_time` are left out.

    Raises:
        BrokerError: the broker does not answer, a topic is missing, or nothing more came for 30 s.
        ValueError: an unknown security option.
        OSError: a file cannot be written.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    for topic, kind in DUMPED.items():
        with (run_dir / f"{topic}.jsonl").open("wb") as file:
            for record in read_records(kafka, topic):
                with suppress(MessageError):
                    seen = (record.value, time.time())
                    message = decode(kind, *seen) if topic == "rejects" else decode_keyed(kind, record.key, *seen)
                    if message.wall_time >= since_wall:
                        file.write(encode(message) + b"\n")
