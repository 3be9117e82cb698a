"""The champion of every job swapped again and again under load; each forecast compared with what its model says."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.forecast.online import Online
from pipelines.bench.fastpath.champions import promote, shelve
from pipelines.bench.fastpath.children import Children
from pipelines.bench.fastpath.load import BEGIN, BEGUN, JOBS, STEP_S
from pipelines.bench.fastpath.local import frozen
from pipelines.bench.fastpath.served import ServedProcess
from pipelines.bench.fastpath.store import percentiles_us
from pipelines.bench.fastpath.wire import scheduled
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.wire import Took, read_answer
from pipelines.serve.step.generations import Generation, serving
from pipelines.serve.step.keys import active_key, forecast_key, sample_key
from pipelines.serve.step.records import ForecastValue, SampleValue, unpacked
from pipelines.store import Reader
from tidecast.messages import Forecast, decode

PER_S = 500.0
EVERY_S = 2.0
"""Between two champions of all jobs."""
_NEAR = 1e-6


def measure(children: Children, folder: Path, made: Sequence[ModelSet], events: int) -> dict[str, Any]:
    """Send at 500 a second over 16 jobs while two champions take turns.

    Returns:
        `events`; `swaps` that came into force while they were sent; `missed`, `doubled`, `mixed` forecasts;
        `longest_gap_ms` between two answers; `latency_us` from the moment a sample was due.
    """
    server = ServedProcess(children, folder, made[0])
    try:
        for number, one in enumerate(made, 1):
            shelve(server.champions, str(number), one)
        frames = server.feed.frames(events, JOBS)
        done = threading.Event()
        turns = threading.Thread(target=_turns, args=(server.champions, len(made), done))
        turns.start()
        try:
            with frozen():
                took, answers, came = scheduled(server.socket, frames, PER_S)
        finally:
            done.set()
            turns.join()
        with Reader.open(server.store) as reader:
            counted = [_counted(reader, job, made, BEGIN + BEGUN, server.feed.next[job]) for job in JOBS]
    finally:
        server.close(children)
    said = [(JOBS[n % len(JOBS)], f.version) for n, raw in enumerate(answers) for f in _forecasts(raw)]
    return {
        "events": events,
        "per_s": PER_S,
        "swaps": sum(one["swaps"] for one in counted),
        "missed": sum(one["missed"] for one in counted) + events - len(set(said)),
        "doubled": len(said) - len(set(said)),
        "mixed": sum(one["mixed"] for one in counted),
        "longest_gap_ms": float(np.diff(came).max()) / 1e6,
        "latency_us": percentiles_us(took),
    }


def mixed(
    origins: Mapping[int, ForecastValue],
    generations: Sequence[Generation],
    rates: Series,
    forecasters: Mapping[tuple[str, str, str], Forecaster],
) -> int:
    """Forecasts that are not those of the one set that serves their window: by digests, version, and in every number.

    Args:
        origins: forecast by window.
        generations: of the job.
        rates: its windows, from the first on.
        forecasters: by the digests of their set.
    """
    first, wrong = round(rates.start / rates.step_s), 0
    for by in generations:
        own = [w for w in sorted(origins) if serving(generations, w) is by]
        if not own:
            continue
        forecaster = forecasters.get(by.digests)
        if forecaster is None:
            wrong += len(own)
            continue
        online = Online(forecaster)
        begin = rates.values[by.warmed_from - first : by.warmed_to + 1 - first]
        online.admit("", Series(by.warmed_from * STEP_S, STEP_S, begin))
        for window in range(by.warmed_to + 1, own[-1] + 1):
            expected = online.step("", float(rates.values[window - first]))
            if window in origins:
                wrong += serving(generations, window) is by and not _says(origins[window], by, expected)
    return wrong


def _says(value: ForecastValue, by: Generation, expected: Any) -> bool:
    message = decode(Forecast, value.message)
    one = value.generation == by.number and value.digests == by.digests
    named = value.model_version == message.version == by.model_version
    return one and named and np.allclose(message.quantiles, np.maximum(expected, 0), rtol=_NEAR, atol=_NEAR)


def _counted(reader: Reader, job: str, made: Sequence[ModelSet], begin: int, end: int) -> dict[str, int]:
    """What the store has of a job from the first window under load on."""
    origins = {r.version: unpacked(ForecastValue, r.value) for r in reader.history(forecast_key(job, STEP_S), begin)}
    samples = {r.version: unpacked(SampleValue, r.value).rate for r in reader.history(sample_key(job, STEP_S))}
    first = min(samples)
    values = np.array([samples.get(window, np.nan) for window in range(first, end)])
    generations = [unpacked(Generation, record.value) for record in reader.history(active_key(job))]
    forecasters = {one.digests: one.forecaster for one in made}
    return {
        "missed": sum(window not in origins or not origins[window].message for window in range(begin, end)),
        "mixed": mixed(origins, generations, Series(first * STEP_S, STEP_S, values), forecasters),
        "swaps": sum(begin < one.first_origin <= end for one in generations),
    }


def _turns(champions: Path, versions: int, done: threading.Event) -> None:
    number = 1
    while not done.wait(EVERY_S):
        number = number % versions + 1
        promote(champions, JOBS, str(number))


def _forecasts(raw: bytes) -> list[Any]:
    answer = read_answer(raw)
    return answer.forecasts if isinstance(answer, Took) else []
