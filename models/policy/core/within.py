"""What the simple policies share: whole numbers of executors, useful ones, and the cut to the bounds."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Capacity, Floats
from models.policy.core.view import Choice, View, chosen, flags

GRAIN = 1e-9
"""What rounding errors may add to a whole number of executors before it counts as one more."""


def whole(executors: Floats) -> Floats:
    """(runs,) rounded up, not counting rounding errors."""
    up: Floats = np.ceil(executors - GRAIN * np.maximum(executors, 1.0))
    return up


def useful(capacity: Capacity) -> Floats:
    """(runs or 1,) executors beyond which there is no task, and no partition, for another one."""
    below = capacity.speeds < capacity.speeds[:, -1:]
    count: Floats = below @ np.ones(below.shape[1])
    return count


def within(view: View, wanted: Floats, **why: Floats | np.ndarray) -> Choice:
    """The choice of `wanted` executors within the bounds; where that is no number the target stays.

    Args:
        view: of the runs.
        wanted: (runs,) executors.
        why: further flags of the choice, by the names of `Why` in lower case.
    """
    known = np.isfinite(wanted)
    asked = np.where(known, wanted, view.target)
    kept = np.minimum(np.maximum(asked, view.least), view.most)
    return chosen(kept, flags(ceiling=asked > view.most, not_a_number=~known, **why))
