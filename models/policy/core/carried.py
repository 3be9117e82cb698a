"""A policy's memory of one run as plain JSON values, and back, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from models.policy.core.policy import Policy
from models.policy.core.view import Memory


def dump(memory: Memory) -> dict[str, Any]:
    """Return a policy's memory of one run as JSON values, by name and without the axis of runs.

    Whole numbers become integers; NaN and the infinities become strings ("nan", "inf", "-inf"). `restore` is the
    inverse.
    """
    return {name: _plain(values[0].tolist()) for name, values in memory.items()}


def restore(kept: dict[str, Any], policy: Policy) -> Memory:
    """Rebuild a policy's memory of one run, arrays of shape (1, ...) by name, from the JSON values that `dump` made.

    Names that end in `_*`, as older logs have them, are read without it.

    Returns:
        The memory; where names or shapes are not those that the policy has now, an empty one, `policy.fresh(1)`.

    Raises:
        ValueError, TypeError: a value is no number ("nan" and "inf" are), or a list is ragged.
    """
    fresh = policy.fresh(1)
    found = {name.removesuffix("_*"): np.array([_number(value)], np.float64) for name, value in kept.items()}
    if {name: a.shape for name, a in found.items()} != {name: a.shape for name, a in fresh.items()}:
        return fresh
    return {name: found[name] for name in fresh}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not math.isfinite(value):
        return str(value)  # JSON has no NaN and no infinity
    if value.is_integer() and abs(value) < 2**53 and (value or math.copysign(1, value) > 0):
        return int(value)
    return value


def _number(value: Any) -> Any:
    return [_number(item) for item in value] if isinstance(value, list) else float(value)
