"""Records as a topic may hold them: sound ones, wrong ones by hand, and wrong ones by seeded draw."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import Any, NamedTuple

from models.pool.state import PoolShare, PoolState
from tidecast import messages as sent
from tidecast.orders import ReplayOrder, ReplayProgress

JOB, POOL = "orders", "shared"
DRAWN = 60
"""Records by draw on every topic."""


class OddRecord(NamedTuple):
    """One record.

    Attributes:
        topic, key, value: as they lie there.
        name: what is odd about it.
        good: whether it is to be accepted; None of a drawn one, about which readers have only to agree.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    name: str
    good: bool | None


def make_corpus(now: float, seed: int = 7) -> list[OddRecord]:
    """Make records of every topic: valid ones, wrong ones by hand, and DRAWN (60) with fields changed at random.

    Args:
        now: epoch seconds that the reader's wall clock shows.
        seed: the same seed and `now` make the same records; `good` is None for the drawn ones.
    """
    chance = random.Random(seed)
    records = []
    for topic, kind in KINDS.items():
        valid = json.loads(sent.encode(make_valid_messages(now)[topic]))
        key = _key(topic, valid)
        for name, fields, accepted in _changed(valid, now):
            records.append(OddRecord(topic, key, json.dumps(fields).encode(), name, accepted))
        for name, value, accepted in _bytes(json.dumps(valid).encode()):
            records.append(OddRecord(topic, key, value, name, accepted))
        if topic not in ("control", "rejects"):
            records += [
                OddRecord(topic, k, json.dumps(valid).encode(), f"key {k!r}", False) for k in (None, b"", b"x", b"\xff")
            ]
        for i in range(DRAWN):
            fields = {
                **valid,
                **{n: _odd(chance) for n in chance.sample(sorted(kind.__annotations__), chance.randint(1, 2))},
            }
            fields = {name: value for name, value in fields.items() if chance.random() > 0.02}
            records.append(OddRecord(topic, key, json.dumps(fields).encode(), f"drawn {i}", None))
    return records


def make_valid_messages(now: float) -> dict[str, Any]:
    """Make a valid message for every topic, by topic, as sent at wall time `now` (epoch seconds)."""
    time, levels, rows = now - 10, [0.1, 0.5, 0.9], [[1.0, 2.0, 3.0]] * 2
    return {
        "metrics": sent.MetricSample(JOB, "interval", time, now, arrival_rps=12.5, lag_records=3, executors=2),
        "forecasts": sent.Forecast(JOB, time, now, 1.0, 60.0, levels, rows, "m", "1", "champion", "network", 9, 1),
        "decisions": sent.Decision(
            "d1", JOB, time, now, 1.0, "act", "forecast", 3, "why", ["up"], {"lag": {"a": 1}}, {}
        ),
        "outcomes": sent.Outcome("d1", JOB, time, now, 1.0, "confirmed", "1 to 3", 1, 3, 3, now, now),
        "heartbeats": sent.Heartbeat(JOB, "serving", time, now, 1.0, "1", time),
        "contracts": sent.ContractText(JOB, time, now, 1.0, "00ff", "{}"),
        "control": sent.Control(JOB, now, mode="observe"),
        "rejects": sent.Reject("metrics", 0, 7, "autoscaler", "not JSON", "{", now),
        "wants": sent.PoolWant(JOB, time, now, 1.0, POOL, 3, 2, 1, 1, [9.0, 4.5, 0.0], 0.5, [now + 60.0], [2], 1, 3),
        "pools": PoolState(
            POOL, now, "divided", "", 8, 7.5, 16.0, 0.05, 8.0, 100.0, 600.0, 9000.0, [[now, now + 60, [JOB]]], 9, now,
            None, [JOB], [asdict(PoolShare(JOB, 2.0, 1, 1, 1.4, "", now, 3, 1, 2, 0.5, 2, 0, "yields 1", ["pool"], 1))],
        ),
    }  # fmt: skip


def make_replay_messages(now: float) -> tuple[ReplayOrder, ReplayProgress]:
    """Make a valid order of a replay, and what its driver says of it, as sent at wall time `now` (epoch seconds)."""
    ends = {"events": {"0": 9, "1": 4}}
    order = ReplayOrder("r1", JOB, now, "run", {"events": {"0": 0, "1": 2}}, ends, 250.0, schedule=[[now, 2]])
    return order, ReplayProgress("r1", JOB, now, now, 1.0, "running", 5, 13)


KINDS = {topic: type(message) for topic, message in make_valid_messages(0.0).items()}
"""Class of the messages on every topic."""


def _key(topic: str, good: dict[str, Any]) -> bytes:
    named = {"contracts": good.get("hash"), "control": f"{JOB}:mode", "rejects": "metrics", "pools": POOL}
    return str(named.get(topic, JOB)).encode()


def _changed(good: dict[str, Any], now: float) -> list[tuple[str, dict[str, Any], bool]]:
    found: list[tuple[str, dict[str, Any], bool]] = [
        ("as it is sent", good, True),
        ("a field of a newer version", {**good, "colour": "blue", "more": {"deep": [1, None, {"x": 2.5}]}}, True),
        ("a little ahead", {**good, "wall_time": now + 200}, True),
        ("far ahead", {**good, "wall_time": now + 3600}, False),
        ("milliseconds", {**good, "wall_time": now * 1000}, False),
        ("negative", {**good, "wall_time": -1.0}, False),
        ("another schema", {**good, "schema": 2}, False),
        ("schema as text", {**good, "schema": "1"}, False),
        ("schema as truth", {**good, "schema": True}, False),
        ("wall time as text", {**good, "wall_time": "now"}, False),
        ("wall time of 400 digits", {**good, "wall_time": 10**400}, False),
        ("NaN where nobody looks", {**good, "more": float("nan")}, False),
        ("Infinity", {**good, "wall_time": float("inf")}, False),
        ("nested too deep", {**good, "more": _nested(40)}, False),
        ("nested without end", {**good, "more": _nested(900)}, False),
        ("half a surrogate pair", {**good, "more": "\ud800"}, False),
        ("a surrogate pair", {**good, "more": "\U0001f600"}, True),
        ("a long value", {**good, "more": "x" * 900_000}, True),
        ("too long a value", {**good, "more": "x" * 2_000_000}, False),
    ]
    found += [
        (f"without {name}", {n: v for n, v in good.items() if n != name}, False) for name in ("wall_time", "schema")
    ]
    found += [(f"null {name}", {**good, name: None}, False) for name in ("wall_time", "schema")]
    if "job" in good:
        names: list[Any] = ["", "a b", "o'clock", 'a"b', "../up", "a/b", "größe", "x" * 65, "a\n", "a\x00", 5, None, {}]
        found += [(f"job {name!r}"[:40], {**good, "job": name}, False) for name in names]
    if "time" in good:
        found += [
            ("job time in milliseconds", {**good, "time": now * 1000}, False),
            ("job time before 1970", {**good, "time": -5.0}, False),
            ("job time ahead of the wall's", {**good, "time": now + 3600}, False),
            ("job time ahead in a replay", {**good, "time": now + 3600, "time_scale": 720.0}, True),
            ("time scale 0", {**good, "time_scale": 0}, False),
            ("time scale of a million years", {**good, "time_scale": 1e15}, False),
            ("time scale of next to nothing", {**good, "time_scale": 1e-320}, True),
        ]
    return found


def _bytes(good: bytes) -> list[tuple[str, bytes | None, bool]]:
    twice = good[:-1] + b',"schema":1}'
    return [
        ("nothing", b"", False), ("blank", b" \n", False), ("cut off", good[:-1], False),
        ("a tail", good + b" x", False),
        ("two", good + good, False), ("a list", b"[" + good + b"]", False), ("null", b"null", False),
        ("a number", b"5", False), ("text", b'"text"', False), ("NUL", b"\x00" * 9, False),
        ("a byte order mark", b"\xef\xbb\xbf" + good, False), ("UTF-16", good.decode().encode("utf-16"), False),
        ("no UTF-8", good[:-1] + b',"more":"\xff\xfe"}', False), ("a name twice", twice, False),
        ("no UTF-8 in a field", good.replace(b'": "', b'": "\xff', 1), False),
        ("no UTF-8 in a name", good[:-1] + b',"\xff":1}', False),
        ("a name twice inside", good[:-1] + b',"more":{"a":1,"a":2}}', False),
        ("1e400", good[:-1] + b',"more":1e400}', False),
        ("5000 digits", good[:-1] + b',"more":' + b"1" * 5000 + b"}", False),
        ("brackets", b"[" * 100_000, False), ("blanks around", b" \t" + good + b"\r\n", True),
        ("a long number", good[:-1] + b',"more":0.' + b"1" * 3000 + b"}", True),
        ("single quotes", good.replace(b'"', b"'"), False),
        ("a control character", good[:-1] + b',"more":"\x01"}', False),
    ]  # fmt: skip


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _odd(draw: random.Random) -> Any:
    return draw.choice([
        None, True, False, 0, 1, -1, 2**63, 2**63 - 1, -(2**70), 10**30, 0.5, -0.0, 1e15, 1e16, 1e308, float("nan"),
        float("-inf"), 1_700_000_000, 1.7e12, "", "act", "interval", "batch", "5", "a b", "\x00", [], [0.5], [[1.0]],
        [None], {}, {"a": 1}, {"a": [float("inf")]},
    ])  # fmt: skip
