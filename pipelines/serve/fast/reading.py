"""Answers to requests that only read: objects now or as of a time, the frontier, and what-if forecasts."""

from __future__ import annotations

import math

from models.forecast.core.series import SeriesError
from pipelines.serve.fast.core import Core
from pipelines.serve.net import wire
from pipelines.serve.net.wire import Answer, Refused, Request
from pipelines.store import Conflict, Fenced, NotStable, Pruned, StoredRecord, StoreError, StoreFull
from pipelines.store.disk.errors import BadInput
from pipelines.store.disk.limits import check_key

_CODES = {
    Conflict: "conflict", NotStable: "not_stable", Pruned: "pruned", BadInput: "input", StoreFull: "full",
    Fenced: "fenced",
}  # fmt: skip
_COPY = "/what-if"
"""Name, which no job can have, under which a model steps the copy of a job's state."""


def refusal(error: StoreError) -> Refused:
    """Return a store's error as a refusal for the client.

    Its code is "conflict", "not_stable", "pruned", "input", "full" or "fenced", and "store" for any other.
    """
    return Refused(next((code for kind, code in _CODES.items() if isinstance(error, kind)), "store"), str(error))


def answer_request(core: Core, request: Request) -> Answer:
    """Answer a request that only reads; an error of the store is answered by a `Refused`, see `refusal`.

    Other codes of `Refused`: "oversized" (the value does not fit a frame), and for a what-if "unknown_job", "message"
    (the rate is negative or not finite) and "model" (the model cannot be stepped).

    Raises:
        AssertionError: the request is a `Put`.
    """
    try:
        return _answer(core, request)
    except StoreError as error:
        return refusal(error)


def _answer(core: Core, request: Request) -> Answer:
    if isinstance(request, (wire.Get, wire.AsOf, wire.Versions)):
        check_key(request.key)
    match request:
        case wire.Ping(payload):
            return wire.Pong(payload)
        case wire.Get(key, version):
            return _found(key, core.store.get(key, version))
        case wire.AsOf(key, t):
            return _found(key, core.store.get_at_time(key, t))
        case wire.Versions(key, lo, hi):
            return wire.VersionList(core.store.list_versions(key, lo, hi)[: wire.MOST_VERSIONS])
        case wire.Frontier():
            return wire.FrontierTimes(*core.store.frontier())
        case wire.WhatIf(job, rate):
            return _what_if(core, job, rate)
        case wire.Put():
            raise AssertionError("puts are taken together")


def _found(key: str, record: StoredRecord | None) -> Answer:
    if record is None:
        return wire.Absent()
    if (size := len(record.value)) > wire.ROOM:  # a model's weights, a large state
        why = f"{key} version {record.version} has {size} bytes; an answer has room for {wire.ROOM}"
        return Refused("oversized", f"{why}. Read it from the store itself: pipelines.store.Reader.open(folder).")
    return wire.Found.of(record)


def _what_if(core: Core, job: str, rate: float) -> Answer:
    """Step a copy of the job's state by a made-up rate (records/s); carried state and store stay as they are."""
    if job not in core.known:
        return Refused("unknown_job", f"job {job!r} has no contract")
    if not (math.isfinite(rate) and rate >= 0):
        return Refused("message", f"rate={rate}: a finite number of records/s from 0 on is expected")
    served = core.job(job)
    model, newest = served.model, served.newest
    if model is None or newest is None:
        return wire.WireForecast([], [])
    try:
        model.restore(_COPY, model.state(job), served.history(newest, newest))
        quantiles = model.step(_COPY, rate)
    except (SeriesError, ValueError) as error:
        return Refused("model", f"{job}: {error}")
    finally:
        if _COPY in model:
            model.forget(_COPY)
    return wire.WireForecast(quantiles.tolist(), list(model.forecaster.levels))
