"""The readers: for each what it makes of a record, by the code that runs live, on a state of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from configs.contract import Contract
from models.policy.live.memory import fresh
from pipelines.bench.borders.corpus import JOB, KINDS, OddRecord
from pipelines.ingest.columns import KINDS as INGESTED
from pipelines.scale.processor import Scaler
from pipelines.serve.fast.core import Arrival, Core
from pipelines.serve.step.samples import read_sample
from pipelines.serve.stream.fleet_step import FleetStep
from pipelines.store import Store
from tidecast.commands import Commands
from tidecast.control import mode_key
from tidecast.guard import Limits
from tidecast.job import Job
from tidecast.messages import MessageError, decode, encode, keyed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[[OddRecord, float], bool]
"""Whether a reader accepts a record at a wall time."""
STEP_S = 60.0


@contextmanager
def readers() -> Iterator[dict[str, tuple[frozenset[str], Read]]]:
    """By name: the topics that a reader follows, and its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        yield {
            "decode": (frozenset(KINDS), _decode),
            "fast reader": (frozenset({"metrics"}), _sample),
            "fast server": (frozenset({"metrics"}), lambda entry, now: _fast(entry, now, Path(folder))),
            "stream server": (frozenset({"metrics"}), lambda entry, now: _stream(entry, now, Path(folder))),
            "autoscaler": (frozenset({"metrics", "forecasts", "heartbeats"}), _scaler),
            "agent": (frozenset({"decisions", "control", "heartbeats"}), _agent),
        }


def ingested(spark: SparkSession, entries: list[OddRecord], now: float) -> dict[int, bool]:
    """What the lake's gate makes of those of its topics, by their place in the list."""
    from pipelines.ingest.parse import parsed

    found: dict[int, bool] = {}
    for topic, kind in INGESTED.items():
        rows = [(one.key, one.value, 0, i) for i, one in enumerate(entries) if one.topic == topic]
        frame = spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")
        judged = parsed(frame, kind, now).select("kafka_offset", "problem", "wall_time").collect()
        # A row that its columns lost would be stored as nulls.
        found |= {row.kafka_offset: row.problem is None and row.wall_time is not None for row in judged}
    return found


def _key(entry: OddRecord) -> str | None:
    return None if entry.key is None else entry.key.decode("utf-8", "replace")


def _decode(entry: OddRecord, now: float) -> bool:
    try:
        if entry.topic not in ("control", "rejects"):
            keyed(KINDS[entry.topic], _key(entry), entry.value, now)
        else:
            message: Any = decode(KINDS[entry.topic], entry.value, now)
            return entry.topic != "control" or _key(entry) == mode_key(message.job)
    except MessageError:
        return False
    return True


def _sample(entry: OddRecord, now: float) -> bool:
    try:
        read_sample(entry.value or b"", now, _key(entry) or "")
    except MessageError:
        return False
    return True


def _fast(entry: OddRecord, now: float, folder: Path) -> bool:
    with tempfile.TemporaryDirectory(dir=folder) as home, Store.open(Path(home), 1 << 26) as store:
        core = Core(store, STEP_S, {JOB}, epoch=1)
        core.take([Arrival(entry.value or b"", ("metrics", 0, 0), b"1", _key(entry) or "")], now)
        return not any(name.startswith("refused") for name in core.counts)


def _stream(entry: OddRecord, now: float, folder: Path) -> bool:
    key = _key(entry) or ""
    row = {"key": key, "value": entry.value, "partition": 0, "offset": 0}
    _, out = FleetStep(key, STEP_S, folder / "sets", {JOB}, 1).take(None, [row], now)
    return not any(topic == "rejects" for topic, _, _ in out)


def _scaler(entry: OddRecord, now: float) -> bool:
    contract = Contract(job=JOB)
    row = {"topic": entry.topic, "value": entry.value, "partition": 0, "offset": 0}
    _, _, rejects = Scaler(_key(entry) or "", contract, "forecast", "act").take(fresh(contract), [row], now)
    return not rejects


def _agent(entry: OddRecord, now: float) -> bool:
    sent = _Sent()
    nothing: Any = None  # an agent that observes touches no executor
    job = Job(JOB, "observe", None, Limits(1, 4), nothing, cast(Any, sent), ())
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    if entry.topic != "control" and _key(entry) != JOB:
        return False  # another job's: it is not looked at
    commands._take(SimpleNamespace(topic=entry.topic, key=entry.key, value=entry.value, partition=0, offset=0))
    return "rejects" not in sent.topics


class _Sent:
    def __init__(self) -> None:
        self.topics: list[str] = []

    def send(self, topic: str, key: str, message: Any) -> None:
        encode(message)
        self.topics.append(topic)
