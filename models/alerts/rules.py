"""The alerts as a file of rules for Prometheus, and the two that it alone can tell: that nobody follows."""

from __future__ import annotations

import re
from typing import Any

from models.alerts.table import ALERTS, KEEP_S, Alert

_VALUES = {
    "s": "{{ $value | humanizeDuration }}",
    "times": '{{ $value | printf "%.2f" }}',
    "share": "{{ $value | humanizePercentage }}",
    "number": '{{ $value | printf "%.0f" }}',
}
_FOLLOWER = "tidecast_follower_timestamp_seconds"
_PAGE = "docs/alerts.md"


def rules_document() -> dict[str, Any]:
    """Return the content of the rules' file, plain values in the order in which they are written."""
    return {
        "groups": [
            {"name": "tidecast", "rules": [_rule(alert) for alert in ALERTS]},
            {"name": "tidecast-follower", "rules": [_gone(), _renamed()]},
        ]
    }


def _rule(alert: Alert) -> dict[str, Any]:
    text = re.sub(r"\{(job|pool|topic|table)\}", r"{{ $labels.\1 }}", alert.text)
    return {
        "alert": alert.name,
        "expr": alert.condition.promql,
        **({"for": f"{alert.for_s:.0f}s"} if alert.for_s else {}),
        "keep_firing_for": f"{KEEP_S}s",
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": text.replace("{value}", _VALUES[alert.unit]), "description": alert.remedy, "runbook": _PAGE,
        },
    }  # fmt: skip


def _gone() -> dict[str, Any]:
    return {
        "alert": "TidecastFollowerGone",
        "expr": f"absent({_FOLLOWER}) or time() - {_FOLLOWER} > 60",
        "for": "60s",
        "labels": {"severity": "page"},
        "annotations": {
            "summary": "`tidecast metrics` does not answer or has stopped; no other alert of Tidecast can be told",
            "description": "Start it again; its stderr says what ended it.", "runbook": _PAGE,
        },
    }  # fmt: skip


def _renamed() -> dict[str, Any]:
    return {
        "alert": "TidecastLabelsRenamed",
        "expr": 'tidecast_job_contract_valid{exported_job!=""}',
        "labels": {"severity": "ticket"},
        "annotations": {
            "summary": "Prometheus has renamed the label `job` of Tidecast's metrics; its alerts do not name the job",
            "description": "Set `honor_labels: true` where Prometheus scrapes it.", "runbook": _PAGE,
        },
    }  # fmt: skip
