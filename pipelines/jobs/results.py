"""What the managed job counted, and how it compares with the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from configs.sections import Kafka
from pipelines.kafka.broker import read_all

Counts = Mapping[str, Mapping[str, int]]


def counted(kafka: Kafka, start: Mapping[int, int] | None = None) -> dict[str, dict[str, int]]:
    """The running total of every key on `results`: its last record is the one that holds.

    Args:
        kafka: the broker.
        start: first offset per partition that belongs to this run (`running.start_of`); None reads the whole topic.
    """
    totals: dict[str, dict[str, int]] = {}
    for record in read_all(kafka, "results"):
        if record.value is None or record.offset < (start or {}).get(record.partition, 0):
            continue
        total = json.loads(record.value)
        totals[total["key"]] = {"n": total["n"], "seq_sum": total["seq_sum"]}
    return totals


def compare(truth: Mapping[str, Any], found: Counts) -> dict[str, int]:
    """Records lost and duplicated, key by key: `truth` is `truth.json`, `found` comes from `counted`.

    Counts that agree while the sums of the sequence numbers differ mean that one record at least was lost and
    another counted twice.
    """
    expected: Counts = truth["per_key"]
    lost = duplicated = 0
    nothing = {"n": 0, "seq_sum": 0}
    for key in set(expected) | set(found):
        want, have = expected.get(key, nothing), found.get(key, nothing)
        swapped = want["n"] == have["n"] and want["seq_sum"] != have["seq_sum"]
        lost += max(0, want["n"] - have["n"]) + swapped
        duplicated += max(0, have["n"] - want["n"]) + swapped
    total = sum(entry["n"] for entry in found.values())
    return {"produced": truth["produced"], "counted": total, "lost": lost, "duplicated": duplicated}
