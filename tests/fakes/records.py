"""Messages as a sender would publish them, and every way in which they can be bad."""

from __future__ import annotations

import json
from typing import Any

NOW = 1_760_000_000.0
_COMMON = {"job": "word_count", "time": 1_413_950_400.0, "wall_time": NOW - 5, "time_scale": 720.0, "schema": 1}
GOOD: dict[str, dict[str, Any]] = {
    "metrics": {
        **_COMMON, "kind": "interval", "span_s": 720.0, "arrival_rps": 212.5, "lag_records": 300, "mode": "act",
    },
    "forecasts": {
        **_COMMON, "step_s": 1800.0, "levels": [0.1, 0.5, 0.9], "quantiles": [[1.0, 2.0, 3.0], [2, 2, 4]], "model": "m",
        "version": "3", "alias": "champion", "kind": "gru", "history_steps": 1344, "epoch": 1,
    },
    "decisions": {
        **_COMMON, "id": "d1", "mode": "act", "policy": "forecast", "executors": 3, "reason": "212 rec/s need 3",
        "codes": ["forecast", "up"], "inputs": {"rate": 212.5, "nested": {"kind": 5}}, "expected": {},
    },
    "outcomes": {
        **_COMMON, "decision_id": "d1", "status": "confirmed", "reason": "3 executors", "executors_before": 2,
        "executors_after": 3, "decided_at": NOW - 4, "observed": {"executors": 3},
    },
    "contracts": {**_COMMON, "hash": "00ff", "text": "{}"},
}  # fmt: skip


def record(topic: str, without: str | None = None, **changes: Any) -> bytes:
    """A good record of the topic, with changes; NaN and Infinity are written as Python writes them."""
    fields = {**GOOD[topic], **changes}
    fields.pop(without or "", None)
    return json.dumps(fields).encode()


def bad_records(topic: str) -> dict[str, tuple[bytes | None, str]]:
    """By a name: a bad record, and a word that the reason must hold."""
    good, nan = record(topic), float("nan")
    found: dict[str, tuple[bytes | None, str]] = {
        "nothing": (None, "empty"),
        "empty": (b"", "empty"),
        "cut off": (good[:-1], "not JSON"),
        "text": (b"hello", "JSON"),
        "bytes": (b"\xff\xfe\x00{", "JSON"),
        "a number": (b"5", "JSON"),
        "null": (b"null", "JSON"),
        "a list": (b"[" + good + b"]", "JSON"),
        "two at once": (good + good, "not JSON"),
        "with a tail": (good + b" x", "not JSON"),
        "single quotes": (good.replace(b'"', b"'"), "JSON"),
        "no schema": (record(topic, without="schema"), "schema"),
        "unknown schema": (record(topic, schema=2), "schema=2"),
        "schema as text": (record(topic, schema="1"), "schema='1'"),
        "far future": (record(topic, wall_time=NOW + 301), "wall_time=1760000301"),
        "time is milliseconds": (record(topic, time=1_413_950_400_000.0), "time=1413950400000.0: at most 4102444800"),
        "NaN": (record(topic, time=nan), "time=nan"),
        "Infinity": (record(topic, wall_time=float("inf")), "wall_time=inf"),
        "negative scale": (record(topic, time_scale=-1.0), "time_scale=-1.0"),
        "no job": (record(topic, without="job"), "job is missing"),
        "null job": (record(topic, job=None), "job=None: text is expected"),
        "number for text": (record(topic, job=5), "job=5: text is expected"),
        "object for text": (record(topic, job={"a": 1}), "job={'a': 1}: text is expected"),
        "no name": (record(topic, job="o'clock, 5"), "letters"),
        "text for number": (record(topic, time="2014-10-22"), "time='2014-10-22': float is expected"),
        "truth for number": (record(topic, time=True), "time=True: float is expected"),
    }
    return found | _OWN[topic]


_OWN: dict[str, dict[str, tuple[bytes | None, str]]] = {
    "metrics": {
        "unknown kind": (record("metrics", kind="second"), "kind='second'"),
        "NaN rate": (record("metrics", arrival_rps=float("nan")), "arrival_rps=nan"),
        "negative rate": (record("metrics", arrival_rps=-0.5), "arrival_rps=-0.5: at least 0"),
        "miscounted rate": (record("metrics", arrival_rps=1.1e9), "arrival_rps=1100000000.0: at most 1000000000.0"),
        "miscounted executors": (record("metrics", executors=1 << 62), "executors=4611686018427387904: at most 10000"),
        "negative lag": (record("metrics", lag_records=-1), "lag_records=-1"),
        "half a record": (record("metrics", lag_records=1.5), "lag_records=1.5: int is expected"),
        "no span": (record("metrics", span_s=0.0), "span_s=0.0: above 0"),
        "interval without arrivals": (record("metrics", without="arrival_rps"), "arrival_rps is missing"),
    },
    "forecasts": {
        "falling quantiles": (record("forecasts", quantiles=[[1.0, 3.0, 2.0]]), "quantiles"),
        "negative quantiles": (record("forecasts", quantiles=[[-1.0, 3.0, 4.0]]), "quantiles"),
        "NaN quantile": (record("forecasts", quantiles=[[1.0, 3.0, float("nan")]]), "quantiles"),
        "null quantile": (record("forecasts", quantiles=[[1.0, None, 3.0]]), "quantiles"),
        "a quantile too few": (record("forecasts", quantiles=[[1.0, 2.0]]), "quantiles"),
        "no steps": (record("forecasts", quantiles=[]), "without steps"),
        "a number for quantiles": (record("forecasts", quantiles=3), "quantiles=3"),
        "no step": (record("forecasts", step_s=0.0), "step_s=0.0"),
    },
    "decisions": {
        "unknown mode": (record("decisions", mode="dance"), "mode='dance'"),
        "negative executors": (record("decisions", executors=-3), "executors=-3"),
        "negative rate": (record("decisions", admission_rps=-3.0), "admission_rps=-3.0"),
        "NaN inside": (record("decisions", inputs={"rate": float("nan")}), "inputs"),
        "text for an object": (record("decisions", inputs="{x"), "inputs='{x': an object is expected"),
        "numbers for codes": (record("decisions", codes=[1, 2]), "codes[0]=1: text is expected"),
    },
    "outcomes": {
        "unknown status": (record("outcomes", status="perhaps"), "status='perhaps'"),
        "negative executors": (record("outcomes", executors_after=-1), "executors_after=-1"),
        "NaN time": (record("outcomes", confirmed_at=float("nan")), "confirmed_at=nan"),
    },
    "contracts": {"no text": (record("contracts", without="text"), "text is missing")},
}
