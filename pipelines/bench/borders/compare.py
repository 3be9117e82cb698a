"""The corpus before every reader: who differs from whom, and whom a record has stopped.

Each reader is the code that runs live, on a state of its own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from configs.contract import Contract
from pipelines.bench.borders.corpus import JOB, KINDS, OddRecord, make_corpus
from pipelines.ingest.columns import KINDS as INGESTED
from pipelines.scale.processor import Scaler
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.step.samples import read_sample
from pipelines.serve.stream.fleet_step import FleetStep
from pipelines.store import Store
from tidecast.commands import Commands
from tidecast.control import mode_key
from tidecast.guard import Limits
from tidecast.job import Job
from tidecast.messages import MessageError, decode, decode_keyed, encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_S = 60.0


def compare_readers(spark: SparkSession | None, seed: int = 7) -> dict[str, Any]:
    """Give every record of the corpus to every reader of its topic and compare their verdicts: accepted or not.

    The readers are READERS, the code that runs live; stores are made in temporary folders and deleted.

    Args:
        spark: a session, to ask the lake's gate (reader "ingest") too; None leaves it out.
        seed: of the records that are drawn.

    Returns:
        `records` and `verdicts` (how many), `readers` (names that gave any); lists of [record as "topic: name", reader,
        ...]: `stopped` with the error's text where a reader raised, `differing` with its verdict where that is not the
        reference reader `decode`'s, `unexpected` with `decode`'s where that is not what the record was made for (the
        verdict is None where `decode` raised); `n_stopped`, `n_differing` and `n_unexpected`, their lengths.

    Raises:
        Exception: what the lake's gate raises; errors of the other readers are in `stopped`.
    """
    now = time.time()
    entries = make_corpus(now, seed)
    figures: dict[str, Any] = {"records": len(entries), "stopped": [], "differing": [], "unexpected": []}
    verdicts: list[dict[str, bool]] = [{} for _ in entries]
    for entry, verdict_of in zip(entries, verdicts, strict=True):
        for name, (topics, read) in READERS.items():
            if entry.topic in topics:
                try:
                    verdict_of[name] = read(entry, now)
                except Exception as error:  # live, it would end the reader for every job
                    figures["stopped"].append([_named(entry), name, repr(error)[:200]])
    if spark is not None:
        for place, verdict in ingested_verdicts(spark, entries, now).items():
            verdicts[place]["ingest"] = verdict
    for entry, verdict_of in zip(entries, verdicts, strict=True):
        reference = verdict_of.get("decode")
        if entry.good is not None and reference is not entry.good:
            figures["unexpected"].append([_named(entry), "decode", reference])
        figures["differing"] += [
            [_named(entry), name, accepted] for name, accepted in verdict_of.items() if accepted is not reference
        ]
    figures["verdicts"] = sum(len(verdict_of) for verdict_of in verdicts)
    figures["readers"] = sorted({name for verdict_of in verdicts for name in verdict_of})
    return figures | {f"n_{name}": len(figures[name]) for name in ("stopped", "differing", "unexpected")}


def _named(entry: OddRecord) -> str:
    return f"{entry.topic}: {entry.name}"


def ingested_verdicts(spark: SparkSession, entries: list[OddRecord], now: float) -> dict[int, bool]:
    """Return what the lake's gate makes of those of its topics, accepted or not, by their place in the list.

    Raises:
        Exception: as pyspark raises it.
    """
    from pipelines.ingest.parse import parse_records

    found: dict[int, bool] = {}
    for topic, kind in INGESTED.items():
        rows = [(one.key, one.value, 0, i) for i, one in enumerate(entries) if one.topic == topic]
        frame = spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")
        judged = parse_records(frame, kind, now).select("kafka_offset", "problem", "wall_time").collect()
        # Accepted without a wall time means that the columns were lost and nulls would be stored.
        found |= {row.kafka_offset: row.problem is None and row.wall_time is not None for row in judged}
    return found


def _key(entry: OddRecord) -> str | None:
    return None if entry.key is None else entry.key.decode("utf-8", "replace")


def _decode(entry: OddRecord, now: float) -> bool:
    try:
        if entry.topic not in ("control", "rejects"):
            decode_keyed(KINDS[entry.topic], _key(entry), entry.value, now)
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


def _fast(entry: OddRecord, now: float) -> bool:
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home), 1 << 26) as store:
        core = Core(store, STEP_S, {JOB}, epoch=1)
        core.process([IncomingSample(entry.value or b"", ("metrics", 0, 0), b"1", _key(entry) or "")], now)
        return not any(name.startswith("refused") for name in core.counts)


def _stream(entry: OddRecord, now: float) -> bool:
    key = _key(entry) or ""
    row = {"key": key, "value": entry.value, "partition": 0, "offset": 0}
    _, out = FleetStep(key, STEP_S, Path("/nowhere"), {JOB}, 1).process(None, [row], now)
    return not any(topic == "rejects" for topic, _, _ in out)


def _scaler(entry: OddRecord, now: float) -> bool:
    job = _key(entry) or ""
    row = {"topic": entry.topic, "value": entry.value, "partition": 0, "offset": 0}
    _, sent = Scaler(job, Contract(job=JOB) if job == JOB else None, "forecast", "act").step(None, [row], now, now)
    return job == JOB and not any(topic == "rejects" for topic, _, _ in sent)


def _agent(entry: OddRecord, now: float) -> bool:
    sent = _Sent()
    watched: Any = SimpleNamespace(own=list)  # an agent that observes touches no executor
    job = Job(
        name=JOB, widest_mode="observe", clock=None, limits=Limits(1, 4), actuator=watched, outbox=cast(Any, sent)
    )
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    if entry.topic != "control" and _key(entry) != JOB:
        return False  # another job's: it is not looked at
    commands._handle(SimpleNamespace(topic=entry.topic, key=entry.key, value=entry.value, partition=0, offset=0))
    return "rejects" not in sent.topics


class _Sent:
    def __init__(self) -> None:
        self.topics: list[str] = []

    def enqueue(self, topic: str, key: str, message: Any) -> None:
        encode(message)
        self.topics.append(topic)


READERS: dict[str, tuple[frozenset[str], Callable[[OddRecord, float], bool]]] = {
    "decode": (frozenset(KINDS), _decode),
    "fast reader": (frozenset({"metrics"}), _sample),
    "fast server": (frozenset({"metrics"}), _fast),
    "stream server": (frozenset({"metrics"}), _stream),
    "autoscaler": (frozenset({"metrics", "forecasts", "heartbeats"}), _scaler),
    "agent": (frozenset({"decisions", "control", "heartbeats"}), _agent),
}
"""By name: the topics that a reader follows, and whether it accepts a record at a wall time."""
