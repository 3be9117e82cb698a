"""A log of samples with all that can be wrong with one, and a server over it, here or in a process that is killed."""

from __future__ import annotations

import json
import os
import traceback
from dataclasses import dataclass, field
from functools import cache

import msgspec
import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.serve.fast.core import CURSOR, Core, IncomingSample
from pipelines.serve.fast.outbox import RECORD_HEADER
from pipelines.serve.fast.swapping import finish_swaps, swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.step.records import ForecastValue, decode_value
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK, series
from tidecast.messages import MetricSample, encode

JOBS = ("orders", "rides")
NOW = 1_760_000_000.0
BEGIN = 14 * 24
"""First window of every log."""


def sample(job, window, rate, part=0, parts=1, **changes):
    """One record: a whole window, or a part of one."""
    fields = {
        "job": job, "kind": "interval", "time": (window + part / parts) * STEP, "wall_time": NOW - BEGIN + window,
        "time_scale": 720.0, "span_s": STEP / parts, "arrival_rps": rate, "lag_records": 3,
    }  # fmt: skip
    return MetricSample(**{**fields, **changes})


def raw(*arguments, **changes):
    return encode(sample(*arguments, **changes))


def log_of(seed, windows=45):
    """Samples of two jobs with duplicates, late and wrong ones, gaps, and other values for a closed window."""
    rng = np.random.default_rng(seed)
    records = []
    for w in range(BEGIN, BEGIN + windows):
        for job in JOBS:
            if w > BEGIN + 26 and (rng.random() < 0.05 or (job == "rides" and w < BEGIN + 30)):
                continue  # a gap
            rates = rng.uniform(50, 150, 2).tolist()
            halves = [raw(job, w, rate, part, 2) for part, rate in enumerate(rates)]
            records += halves if rng.random() < 0.5 else [raw(job, w, rates[0])]
            if rng.random() < 0.2:
                records.append(records[-1])
            if rng.random() < 0.05:
                records.append(raw(job, w - 1, 1.0))
            if rng.random() < 0.05:
                records.append(raw(job, w, 100.0).replace(b"100.0", b"NaN"))
            if rng.random() < 0.03:
                records.append(raw("stranger", w, 5.0))
    return records


@dataclass
class Wire:
    """What was sent, in order; told to the outbox only where the server lives on."""

    sent: list = field(default_factory=list)
    deaf: bool = False

    def send(self, topic, key, value, headers, taken=None):
        named = dict(headers)
        self.sent.append((topic, key, named["version"], value))
        if not self.deaf:
            taken(True)


class FileWire(Wire):
    """A wire that outlives the process which sends: what was sent lies in a file, with its headers' note."""

    def __init__(self, path):
        super().__init__()
        self.notes = {}
        if path.exists():
            for topic, key, version, value, note in _frames(path.read_bytes()):
                self.sent.append((topic, key, version, value))
                self.notes[key, version] = note
        self._file = path.open("ab", buffering=0)

    def send(self, topic, key, value, headers, taken=None):
        named = dict(headers)
        self._file.write(_framed((topic, key, named["version"], value, named.get(RECORD_HEADER, b""))))
        self.notes[key, named["version"]] = named.get(RECORD_HEADER, b"")
        super().send(topic, key, value, headers, taken)


def _framed(one):
    body = msgspec.msgpack.encode(one)
    return len(body).to_bytes(4, "little") + body


def _frames(data):
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        yield msgspec.msgpack.decode(data[at + 4 : at + 4 + size])
        at += 4 + size


def forked(work):
    """Do `work` in a process of its own; the number of the signal that ended it, 0 where it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the process failed; its traceback is above"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


class Served:
    """A server in this process over a store on the disk."""

    def __init__(self, folder, log, wire, swaps=()):
        self.store = Store.open(folder)
        self.core = Core(self.store, STEP, JOBS, epoch=7, follows_log=True)
        self.log, self.wire, self.swaps = log, wire, swaps
        self._recall()
        finish_swaps(self.core)
        self.core.outbox.send(wire)

    def _recall(self):
        """As the end of the topic tells; see `pipelines.serve.fast.log_feed.recall_sent`."""
        stored = {job: -1 if (made := self.core.newest_forecast_window(job)) is None else made for job in JOBS}
        for topic, job, version, value in self.wire.sent:
            if topic != "forecasts":
                continue
            origin = int(version)
            self.core.newest_sent[job] = max(self.core.newest_sent.get(job, 0), origin)
            if origin > stored[job] and isinstance(self.wire, FileWire):
                note = decode_value(ForecastValue, self.wire.notes[job, version])
                self.core.closer.adopted.setdefault((job, origin), msgspec.structs.replace(note, message=value))

    @property
    def position(self):
        found = self.store.get_meta(CURSOR)
        return 0 if found is None else int(found)

    def step(self, many=1):
        """Take so many records of the log, and swap where the script says so."""
        at = self.position
        for where, job, version, forecaster in self.swaps:
            if at >= where and len(self.core.job(job).deployments) < int(version):
                made = pack_model(forecaster)
                swap_model(self.core, prepare_model(self.core.windows, job, f"{job}-forecaster", version, made))
        stops = [where for where, *_ in self.swaps if where > at]
        until = min([at + many, len(self.log), *stops])
        arrivals = [IncomingSample(self.log[i], ("metrics", 0, i), str(i + 1).encode()) for i in range(at, until)]
        self.core.process(arrivals, NOW)

    def send(self):
        self.core.outbox.send(self.wire)

    @property
    def done(self):
        return self.position >= len(self.log)

    def close(self):
        self.store.close()


@cache
def scripted_swaps():
    ridge = CATALOGUE["ridge"](TASK, series(400))
    return (
        (30, "orders", "1", Naive(TASK)),
        (60, "rides", "1", ridge),
        (90, "orders", "2", ridge),
        (110, "rides", "2", Naive(TASK, seasonal=False)),
        (125, "orders", "3", Naive(TASK)),
    )


def contents(store):
    """Every object without its times: {key: [(version, value)]}."""
    return {key: [(record.version, record.value) for record in store.history(key)] for key in sorted(store.memory.keys)}


def distinct(sent):
    """What a consumer keeps that drops what it has seen, per key in order."""
    return list(dict.fromkeys(sent))


def said(value):
    return json.loads(value)
