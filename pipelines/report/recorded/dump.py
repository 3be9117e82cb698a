"""What a run said on the topics, written to its folder as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from configs.sections import Kafka
from pipelines.kafka.broker import Record, read_all
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
)  # fmt: skip

DUMPED: dict[str, Any] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome, "rejects": Reject,
    "heartbeats": Heartbeat, "contracts": ContractText,
}  # fmt: skip


def dump(kafka: Kafka, run_dir: Path, since_wall: float) -> dict[str, dict[str, int]]:
    """Write `<topic>.jsonl` for every topic of `DUMPED`, and what was written and left out to `dump.json`.

    A record belongs to the run if its `wall_time` is not before `since_wall` (epoch seconds). Records that cannot be
    decoded are left out and counted as `unreadable`: whoever followed the topic has put them on `rejects`.

    Raises:
        BrokerError: the broker or a topic is missing.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    counts = {}
    for topic, kind in DUMPED.items():
        with (run_dir / f"{topic}.jsonl").open("wb") as file:
            counts[topic] = _write(file, read_all(kafka, topic), kind, since_wall)
    (run_dir / "dump.json").write_text(json.dumps(counts, indent=1))
    return counts


def _write(file: BinaryIO, records: Iterable[Record], kind: Any, since_wall: float) -> dict[str, int]:
    count = {"written": 0, "earlier": 0, "unreadable": 0}
    for record in records:
        try:
            message = decode(kind, record.value)
        except MessageError:
            count["unreadable"] += 1
            continue
        if message.wall_time < since_wall:
            count["earlier"] += 1
            continue
        file.write(encode(message) + b"\n")
        count["written"] += 1
    return count
