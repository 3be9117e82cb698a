"""What was told of which alert, kept in a file, so that a new process tells nothing twice and what is over."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from models.alerts.standing import Key, StandingAlert, State
from models.alerts.table import BY_NAME
from pipelines.stack.private import write_private


def digest_of(webhook: str) -> str:
    """Return what stands for a webhook in the file, as its address is a secret: 16 hexadecimal digits of a SHA-256."""
    return hashlib.sha256(webhook.encode()).hexdigest()[:16]


def read_told(file: Path, now: float) -> dict[str, dict[Key, StandingAlert]]:
    """Read what was told, by the digest of its webhook; nothing where there is no such file, or another's.

    What was told counts as holding at `now` (epoch seconds), so that it is over only if it is not found again. A time
    that is later, as the clock was set back since, counts as now. Of an alert that another release has, or has by other
    labels, nothing can be told any more: it is left out.
    """
    try:
        return {
            digest: {key: _standing(one["standing"], now) for one in kept if _is_of_table(key := _key(one["key"]))}
            for digest, kept in json.loads(file.read_text()).items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_told(file: Path, states: Mapping[str, State]) -> None:
    """Write what was told, by the digest of its webhook, times as epoch seconds; `read_told` is the inverse.

    Raises:
        OSError: it cannot be written.
    """
    kept = {
        digest: [{"key": key, "standing": asdict(one)} for key, one in state.items() if one.times]
        for digest, state in states.items()
    }
    write_private(file, json.dumps(kept))


def _key(kept: list[object]) -> Key:
    alert, labels = kept
    if not isinstance(labels, list):
        raise TypeError(f"labels {labels!r}: a list is expected")
    return Key(str(alert), tuple((str(name), str(value)) for name, value in labels))


def _is_of_table(key: Key) -> bool:
    alert = BY_NAME.get(key.alert)
    return alert is not None and {name for name, _ in key.labels} == {*alert.condition.all[0].labels}


def _standing(kept: dict[str, Any], now: float) -> StandingAlert:
    times = [float(kept[name]) for name in ("since", "told_at", "value")]
    if not all(map(math.isfinite, times)) or type(kept["times"]) is not int or kept["times"] < 1:
        raise ValueError(f"{kept}: what was told is expected")
    since, told_at, value = times
    return StandingAlert(min(since, now), now, value, min(told_at, now), kept["times"])
