"""A log of samples with all that can be wrong with one, and a server that is killed wherever a test wants it to be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.serve.core import CURSOR, Arrival, Core
from pipelines.serve.model_set import pack
from pipelines.serve.ready import prepare
from pipelines.serve.swapping import redo, swap
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


class KilledError(BaseException):
    """The process is gone: nothing catches this."""


class Served:
    """A server in this process over a store on the disk; `kill` leaves it as a killed process would."""

    def __init__(self, folder, log, wire, swaps=()):
        self.store = Store.open(folder)
        self.core = Core(self.store, STEP, JOBS, epoch=7, follows=True)
        self.log, self.wire, self.swaps = log, wire, swaps
        for topic, job, version, _ in wire.sent:  # as the end of the topic tells
            if topic == "forecasts":
                self.core.sent[job] = max(self.core.sent.get(job, 0), int(version))
        redo(self.core)
        self.core.outbox.send(wire)

    @property
    def position(self):
        found = self.store.get_meta(CURSOR)
        return 0 if found is None else int(found)

    def step(self, many=1):
        """Take so many records of the log, and swap where the script says so."""
        at = self.position
        for where, job, version, forecaster in self.swaps:
            if at >= where and len(self.core.job(job).generations) < int(version):
                made = pack(forecaster)
                swap(self.core, prepare(self.core.windows, job, f"{job}-forecaster", version, made))
        stops = [where for where, *_ in self.swaps if where > at]
        until = min([at + many, len(self.log), *stops])
        arrivals = [Arrival(self.log[i], ("metrics", 0, i), str(i + 1).encode()) for i in range(at, until)]
        self.core.take(arrivals, NOW)

    def send(self):
        self.core.outbox.send(self.wire)

    @property
    def done(self):
        return self.position >= len(self.log)

    def kill(self):
        self.store.close()


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
    return {
        key: [(record.version, record.value) for record in store.history(key)] for key in sorted(store._memory.keys)
    }


def distinct(sent):
    """What a consumer keeps that drops what it has seen, per key in order."""
    return list(dict.fromkeys(sent))


def said(value):
    return json.loads(value)
