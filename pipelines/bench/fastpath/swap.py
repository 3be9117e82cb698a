"""The champion of every job swapped again and again under load; each forecast compared with what its model says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.core.series import Series
from models.forecast.online import Online
from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.bench.fastpath.figures import percentiles_in_us
from pipelines.bench.fastpath.load import BEGIN, BEGUN, JOBS, STEP_S, bench_settings
from pipelines.bench.fastpath.local import frozen_heap
from pipelines.bench.fastpath.served import ServedProcess
from pipelines.bench.fastpath.socket import time_open_loop
from pipelines.bench.repeated import repeated
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.wire import PutResult, read_answer
from pipelines.serve.step.deployments import Deployment, deployment_at
from pipelines.serve.step.keys import active_key, forecast_key, sample_key
from pipelines.serve.step.records import ForecastValue, SampleValue, decode_value
from pipelines.stack.stack import Stack
from pipelines.store import Reader
from tidecast.messages import Forecast, decode

PER_S = 500.0
EVERY_S = 2.0
"""Samples per second; seconds between two swaps of the model."""
_NEAR = 1e-6


def swap_under_load(folder: Path, models: Sequence[ModelSet], events: int) -> dict[str, Any]:
    """Send samples of 16 jobs, 500 a second in all, while the model that serves is swapped for all jobs every 2 s.

    Every stored forecast is compared, within 1e-6, with what its model forecasts for that window when run again on the
    stored samples. Starts and ends a server.

    Args:
        folder: for settings, store and socket, which stay; a new one with a short path.
        models: that take turns; two or more.
        events: samples sent, at least 2.

    Returns:
        `events`; `swaps` that came into force for a window sent, over all jobs; `missed`, forecasts not stored plus
        those not answered; `doubled`, answered twice; `mixed`, whose model, version or numbers are not those of the
        model in service; `longest_gap_ms` between two answers; `latency_us`, `percentiles_in_us` from the moment a
        sample was due.

    Raises:
        SettingsError, StackError, ProcessError, JavaError, ClientError, RefusedError: the server does not start or
            serve.
        TimeoutError, ConnectionError: no answer in 10 s, or the server closed the connection.
        StoreError, OSError: the store cannot be read, or a file cannot be written.
    """
    with Stack(bench_settings(folder), ()) as stack:
        server = ServedProcess(stack, models[0])
        for number, one in enumerate(models, 1):
            add_version(server.champions, str(number), one)
        frames = server.feed.frames(events, JOBS)
        turns = _turns(server.champions, len(models))
        with repeated(partial(next, turns), EVERY_S), server.socket, frozen_heap():
            took_ns, answers, answered_ns = time_open_loop(server.socket, frames, PER_S)
        with Reader.open(server.store) as reader:
            counted = [_counted(reader, job, models, server.feed.next[job]) for job in JOBS]
    issued = [
        (JOBS[number % len(JOBS)], one.version)
        for number, raw in enumerate(answers)
        if isinstance(answer := read_answer(raw), PutResult)
        for one in answer.forecasts
    ]
    total = {name: sum(one[name] for one in counted) for name in ("missed", "mixed", "swaps")}
    return {
        **total,
        "events": events,
        "missed": total["missed"] + events - len(set(issued)),
        "doubled": len(issued) - len(set(issued)),
        "longest_gap_ms": float(np.diff(answered_ns).max()) / 1e6,
        "latency_us": percentiles_in_us(took_ns),
    }


def _turns(champions: Path, versions: int) -> Iterator[None]:
    """Promote the next version with each step."""
    for number in itertools.cycle((*range(2, versions + 1), 1)):
        promote_version(champions, JOBS, str(number))
        yield


def _counted(reader: Reader, job: str, models: Sequence[ModelSet], end: int) -> dict[str, int]:
    """What the store has of a job from the first window under load up to `end`."""
    begin = BEGIN + BEGUN
    issued = {r.version: decode_value(ForecastValue, r.value) for r in reader.history(forecast_key(job, STEP_S), begin)}
    samples = {r.version: decode_value(SampleValue, r.value).rate for r in reader.history(sample_key(job, STEP_S))}
    deployments = [decode_value(Deployment, record.value) for record in reader.history(active_key(job))]
    return {
        "missed": sum(window not in issued or not issued[window].message for window in range(begin, end)),
        "mixed": sum(_mixed(issued, by, deployments, samples, models) for by in deployments),
        "swaps": sum(begin < one.first_origin <= end for one in deployments),
    }


def _mixed(
    issued: dict[int, ForecastValue], by: Deployment, deployments: Sequence[Deployment], rates: dict[int, float],
    models: Sequence[ModelSet],
) -> int:  # fmt: skip
    """How many forecasts of the windows that a generation serves are not its own: by digests, version, every number."""
    own = {window for window in issued if deployment_at(deployments, window) is by}
    forecaster = next((one.forecaster for one in models if one.digests == by.digests), None)
    if not own or forecaster is None:
        return len(own)
    online = Online(forecaster)
    warm = [rates.get(window, np.nan) for window in range(by.warmed_from, by.warmed_to + 1)]
    online.admit("", Series(by.warmed_from * STEP_S, STEP_S, np.array(warm)))
    wrong = 0
    for window in range(by.warmed_to + 1, max(own) + 1):
        expected = online.step("", rates.get(window, np.nan))
        wrong += window in own and not _is_by(issued[window], by, expected)
    return wrong


def _is_by(value: ForecastValue, by: Deployment, expected: Any) -> bool:
    message = decode(Forecast, value.message)
    one = value.deployment == by.number and value.digests == by.digests
    named = value.model_version == message.version == by.model_version
    return one and named and np.allclose(message.quantiles, np.maximum(expected, 0), rtol=_NEAR, atol=_NEAR)
