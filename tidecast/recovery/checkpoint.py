"""How far a query had come, by its checkpoint: offsets and watermark of its last committed micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidecast.spark.progress import parse_offsets
from tidecast.spark.sensors import Partition

VERSION = "v1"
"""Of Spark's log of offsets: a line for the version, one for the batch, one for each source."""


class RecoveryError(ValueError):
    """A job that cannot be recovered as it is to be; the message says why, and what can be done."""


@dataclass(frozen=True)
class Committed:
    """The newest micro-batch that a query had committed.

    Attributes:
        batch: its number.
        at_s: wall time at which it was planned, epoch seconds.
        offsets: after the last record that was processed.
        watermark_ms: event time; 0 before there was one, and in a plan without.
    """

    batch: int
    at_s: float
    offsets: Mapping[Partition, int]
    watermark_ms: int


def read_committed(checkpoint: Path) -> Committed | None:
    """Return the newest micro-batch that a checkpoint says is committed; None where it says so of none.

    Args:
        checkpoint: folder on this computer.

    Raises:
        RecoveryError: the query reads anything but one Kafka source, or a Spark wrote it that keeps other logs.
        OSError: its logs cannot be read.
    """
    numbers = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not numbers:
        return None
    log = checkpoint / "offsets" / str(max(numbers))
    lines = log.read_text().splitlines()
    version, batch, sources = "".join(lines[:1]), "".join(lines[1:2]), lines[2:]
    if version != VERSION:
        raise RecoveryError(f"{log} is of version {version!r}, {VERSION!r} is known: recover in_order")
    found: dict[str, Any] = json.loads(batch or "{}")
    offsets = parse_offsets(sources[0]) if len(sources) == 1 else {}
    if not offsets:
        raise RecoveryError(
            f"{log} has the offsets of {len(sources)} sources: one Kafka source is expected, as a gap is a range of "
            "topics; recover in_order"
        )
    return Committed(
        max(numbers), found.get("batchTimestampMs", 0) / 1000, offsets, max(int(found.get("batchWatermarkMs", 0)), 0)
    )
