"""The corpus before every reader: who differs from whom, and whom a record has stopped.

Each reader is the code that runs live, on a state of its own.
"""

import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from configs.contract import Contract
from pipelines.bench.borders.corpus import JOB, KINDS, make_corpus
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

STEP_S = 60.0


def compare_readers():
    """Every record of the corpus before every reader of its topic: [record as "topic: name", reader, ...] of each.

    Lists: `stopped` with the error's text where a reader raised, `differing` with its verdict where that is not the
    reference reader `decode`'s, `unexpected` with `decode`'s where that is not what the record was made for (None where
    `decode` raised). And `records`, how many, and `readers`, by name.
    """
    now = time.time()
    entries = make_corpus(now)
    stopped, differing, unexpected, readers = [], [], [], set()
    for entry in entries:
        verdict_of = {}
        for name, (topics, read) in READERS.items():
            if entry.topic in topics:
                try:
                    verdict_of[name] = read(entry, now)
                except Exception as error:  # live, it would end the reader for every job
                    stopped.append([_named(entry), name, repr(error)[:200]])
        reference = verdict_of.get("decode")
        if entry.good is not None and reference is not entry.good:
            unexpected.append([_named(entry), "decode", reference])
        differing += [[_named(entry), name, found] for name, found in verdict_of.items() if found is not reference]
        readers |= {*verdict_of}
    lists = {"stopped": stopped, "differing": differing, "unexpected": unexpected}
    return {"records": len(entries), "readers": readers, **lists}


def _named(entry):
    return f"{entry.topic}: {entry.name}"


def ingested_verdicts(spark, entries, now):
    """What the lake's gate makes of those of its topics, accepted or not, by their place in the list."""
    from pipelines.ingest.parse import parse_records

    found = {}
    for topic, kind in INGESTED.items():
        rows = [(one.key, one.value, 0, i, None, 0) for i, one in enumerate(entries) if one.topic == topic]
        columns = "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int"
        frame = spark.createDataFrame(rows, columns)
        judged = parse_records(frame, kind, now).select("kafka_offset", "problem", "wall_time").collect()
        # Accepted without a wall time means that the columns were lost and nulls would be stored.
        found |= {row.kafka_offset: row.problem is None and row.wall_time is not None for row in judged}
    return found


def _key(entry):
    return None if entry.key is None else entry.key.decode("utf-8", "replace")


def _decode(entry, now):
    try:
        if entry.topic not in ("control", "rejects"):
            decode_keyed(KINDS[entry.topic], _key(entry), entry.value, now)
        else:
            message = decode(KINDS[entry.topic], entry.value, now)
            return entry.topic != "control" or _key(entry) == mode_key(message.job)
    except MessageError:
        return False
    return True


def _sample(entry, now):
    try:
        read_sample(entry.value or b"", now, _key(entry) or "")
    except MessageError:
        return False
    return True


def _fast(entry, now):
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home), 1 << 26) as store:
        core = Core(store, STEP_S, {JOB}, epoch=1)
        core.process([IncomingSample(entry.value or b"", ("metrics", 0, 0), b"1", _key(entry) or "")], now)
        return not any(name.startswith("refused") for name in core.counts)


def _stream(entry, now):
    key = _key(entry) or ""
    row = {"key": key, "value": entry.value, "partition": 0, "offset": 0}
    _, out = FleetStep(key, STEP_S, Path("/nowhere"), {JOB}, 1).process(None, [row], now)
    return not any(topic == "rejects" for topic, _, _ in out)


def _scaler(entry, now):
    job = _key(entry) or ""
    row = {"topic": entry.topic, "value": entry.value, "partition": 0, "offset": 0}
    _, sent = Scaler(job, Contract(job=JOB) if job == JOB else None, "forecast", "act").step(None, [row], now, now)
    return job == JOB and not any(topic == "rejects" for topic, _, _ in sent)


def _agent(entry, now):
    sent = _Sent()
    watched = SimpleNamespace(own=list)  # an agent that observes touches no executor
    job = Job(name=JOB, widest_mode="observe", clock=None, limits=Limits(1, 4), actuator=watched, outbox=sent)
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    if entry.topic != "control" and _key(entry) != JOB:
        return False  # another job's: it is not looked at
    commands._handle(SimpleNamespace(topic=entry.topic, key=entry.key, value=entry.value, partition=0, offset=0))
    return "rejects" not in sent.topics


class _Sent:
    def __init__(self):
        self.topics = []

    def enqueue(self, topic, key, message):
        encode(message)
        self.topics.append(topic)


READERS = {
    "decode": (frozenset(KINDS), _decode),
    "fast reader": (frozenset({"metrics"}), _sample),
    "fast server": (frozenset({"metrics"}), _fast),
    "stream server": (frozenset({"metrics"}), _stream),
    "autoscaler": (frozenset({"metrics", "forecasts", "heartbeats"}), _scaler),
    "agent": (frozenset({"decisions", "control", "heartbeats"}), _agent),
}
"""By name: the topics that a reader follows, and whether it accepts a record at a wall time."""
