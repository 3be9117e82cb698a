"""A policy's memory of one run as plain JSON values, and back, bit for bit."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from models.policy.core.view import Memory, Policy

_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""JSON has no words for these."""
_NUMBERED = re.compile(r"(.*_)(\d+)")


def dump(memory: Memory) -> dict[str, Any]:
    """The arrays of a memory of one run, without the axis of runs.

    What is numbered from 0 (`need_max_0`, `need_max_1`, ...) becomes one list under `need_max_*`; whole numbers are
    written short.
    """
    plain = {name: _plain(values[0].tolist()) for name, values in memory.items()}
    groups: dict[str, dict[int, Any]] = {}
    for name, value in plain.items():
        if found := _NUMBERED.fullmatch(name):
            groups.setdefault(found[1], {})[int(found[2])] = value
    kept = {name: value for name, value in plain.items() if not _NUMBERED.fullmatch(name)}
    for prefix, numbered in groups.items():
        if sorted(numbered) == list(range(len(numbered))):
            kept[f"{prefix}*"] = [numbered[i] for i in range(len(numbered))]
        else:
            kept |= {f"{prefix}{i}": value for i, value in numbered.items()}
    return kept


def restore(kept: dict[str, Any], policy: Policy) -> Memory:
    """The memory of one run from what `dump` made; a fresh one if the policy now carries other names or shapes."""
    fresh = policy.fresh(1)
    plain: dict[str, Any] = {}
    for name, value in kept.items():
        plain |= {f"{name[:-1]}{i}": one for i, one in enumerate(value)} if name.endswith("_*") else {name: value}
    found = {name: np.array([_number(value)], np.float64) for name, value in plain.items()}
    if {name: a.shape for name, a in found.items()} != {name: a.shape for name, a in fresh.items()}:
        return fresh
    return {name: found[name] for name in fresh}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < 2**53 and (value or math.copysign(1, value) > 0):
        return int(value)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return _ODD[value] if isinstance(value, str) else float(value)
