"""What is posted to a webhook: a sentence per alert for people, and the same as fields for programs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from models.alerts.standing import Notice
from models.alerts.table import BY_NAME, Alert

_MARKS = {"new": "", "repeated": "still: ", "over": "over: "}


def write_message(notices: Sequence[Notice], now: float) -> dict[str, Any]:
    """Return the JSON values of one message.

    Returns:
        `text`, a line per alert, which chat systems show; and `alerts`, of each `alert` (its name), `status` ("new",
        "repeated" or "over"), `severity`, `labels`, `since` and `now` (UTC, ISO 8601), `value`, `summary` and `remedy`.
    """
    return {"text": "\n".join(_line(one) for one in notices), "alerts": [_fields(one, now) for one in notices]}


def _line(notice: Notice) -> str:
    alert = BY_NAME[notice.key.alert]
    said = f"{_MARKS[notice.kind]}{_summary(alert, notice)}"
    return said if notice.kind == "over" else f"[{alert.severity}] {said}. {alert.remedy}"


def _fields(notice: Notice, now: float) -> dict[str, Any]:
    alert = BY_NAME[notice.key.alert]
    return {
        "alert": alert.name, "status": notice.kind, "severity": alert.severity, "labels": dict(notice.key.labels),
        "since": _moment(notice.standing.since), "now": _moment(now), "value": notice.standing.value,
        "summary": _summary(alert, notice), "remedy": alert.remedy,
    }  # fmt: skip


def _summary(alert: Alert, notice: Notice) -> str:
    return alert.text.format(**dict(notice.key.labels), value=_value(alert, notice.standing.value))


def _value(alert: Alert, value: float) -> str:
    if alert.unit != "s":
        return {"times": f"{value:.2f}", "share": _percent(value)}.get(alert.unit, f"{value:.0f}")
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.0f} {unit}"
    return f"{value:.0f} s"


def _percent(value: float) -> str:
    """As per cent: with a decimal below 10 %, so that what is over or left by little is not told as nothing."""
    return f"{100 * value:.{0 if abs(value) >= 0.1 else 1}f} %"


def _moment(epoch: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
