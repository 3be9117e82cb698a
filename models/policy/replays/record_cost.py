"""What a replayed record costs, in units of a live one: as its order believes, then as its batches tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LEAST = 0.02
"""Least cost: reading a record costs something, whatever one batch tells."""
BELIEVED_ROWS = 100.0
"""Records of a batch beside which the belief of an order weighs as much."""


def replay_cost(replays: Iterable[Mapping[str, Any]], per_record_s: float) -> float | None:
    """Return the work of a replayed record ÷ that of a live one, 0.02 to 1; None where nothing is believed nor told.

    Records that a replay leaves out, as of another range, cost it little. What tasks take without any record counts
    too, so that small batches tell too much: a record never counts for more than a live one.

    Args:
        replays: fields of a `tidecast.orders.ReplayProgress` each: `cost`, and `rows` and `work_s` of its newest batch.
        per_record_s: seconds of a slot that a live record takes.
    """
    work = records = 0.0
    for one in replays:
        if one.get("cost") is not None:
            work, records = work + BELIEVED_ROWS * min(one["cost"], 1.0), records + BELIEVED_ROWS
        if one.get("rows") and one.get("work_s"):
            work, records = work + min(one["work_s"] / per_record_s, one["rows"]), records + one["rows"]
    return min(max(work / records, LEAST), 1.0) if records else None
