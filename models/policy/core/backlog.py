"""The records that wait beyond those that batches in flight hold."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Floats

ALLOWANCE_BATCHES = 1.5
"""Batches of arrivals that count as in flight; only lag beyond them is a backlog."""


def backlog(arrival_rps: Floats | float, lag_records: Floats | float, batch_s: Floats | float) -> Floats:
    """Return the records that wait beyond the arrivals of `ALLOWANCE_BATCHES` batches; of numbers or of arrays.

    Args:
        arrival_rps: records/s.
        lag_records: produced and not yet committed.
        batch_s: seconds that batches should take.
    """
    piled: Floats = np.maximum(0.0, lag_records - ALLOWANCE_BATCHES * batch_s * arrival_rps)
    return piled
