"""The state of the autoscaler's query: what a job was told before, and a step from it."""

from __future__ import annotations

import time
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from configs.contract import Contract
from models.policy.live.memory import Memory
from pipelines.bench.borders.corpus import JOB, make_replay_messages, make_valid_messages
from pipelines.scale.processor import Scaler
from pipelines.scale.stateful import Stepped, step_from
from tidecast.messages import Decision, Heartbeat, MetricSample, decode, encode

CONTRACT = Contract(job=JOB)
_SENT = {"decisions": Decision, "heartbeats": Heartbeat}


def _row(message: Any, topic: str) -> dict[str, Any]:
    return {"topic": topic, "partition": 0, "offset": 0, "value": encode(message)}


def _told(now: float) -> list[dict[str, Any]]:
    """A record of each kind that the autoscaler reads of a job."""
    messages = make_valid_messages(now)
    batch = MetricSample(JOB, "batch", now - 4, now, span_s=2.0, executors=2, batch_rows=900, batch_s=2.0, batch_id=7)
    raised = replace(
        messages["outcomes"], executors_before=1, executors_after=3, target=3, decided_at=now - 20, applied_at=now - 19,
        confirmed_at=now - 9, useful_at=now - 6,
    )  # fmt: skip
    rows = [_row(messages[topic], topic) for topic in ("metrics", "forecasts", "heartbeats")]
    return [*rows, _row(batch, "metrics"), _row(raised, "outcomes"), _row(make_replay_messages(now)[1], "replays")]


def used_memory() -> bytes:
    """Return the memory of a job that was told of for half a minute."""
    now, kept = time.time(), None
    for ago in range(30, 0, -1):
        kept = step_from(_scaler(), kept, _told(now - ago), now - ago, now - ago).kept
    assert kept is not None  # of a job with a contract
    return kept.encode()


def _scaler() -> Scaler:
    return Scaler(JOB, CONTRACT, "mpc", "act")


def step_once(raw: bytes, folder: Path) -> Stepped:
    """Step once from a state, as the autoscaler's query does; `folder` is not used."""
    now = time.time()
    with redirect_stderr(StringIO()):
        return step_from(_scaler(), raw.decode("utf-8", "replace"), _told(now), now, now)


def goes_on(done: Stepped) -> bool:
    """Return whether a step left a memory that is read again, and what it sends is what others read."""
    sent: dict[str, Any] = {topic: decode(_SENT[topic], value) for topic, _, value in done.sent if topic in _SENT}
    return done.kept is not None and isinstance(Memory.from_json(done.kept), Memory) and bool(sent)
