"""The consumers of the Redis stream: read a sample, step the model, add the forecast. Only what they cannot do without.

The bare one keeps nothing: killed, it has lost the model's state and its place. The durable one reads as a member of a
consumer group and puts forecast, state and acknowledgement into one transaction: another could go on from there.

Run them as `python -m pipelines.bench.fastpath.child.redis_consumer SOCKET SET durable|bare`.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.core.series import Series
from models.forecast.online import Online
from pipelines.bench.fastpath.champions import FolderChampions
from pipelines.bench.fastpath.load import BEGIN, BEGUN, JOBS, STEP_S, read_rates
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import ForecastContext, build_message, encode_forecast
from pipelines.serve.step.job import LARGE_STATE_BYTES, LARGE_STATE_WINDOWS
from pipelines.serve.step.keys import window_of
from pipelines.serve.step.samples import read_sample

METRICS, FORECASTS, GROUP = "metrics", "forecasts", "forecasters"
KEPT = 20_000
"""Entries that a stream keeps, about."""


def list_streams(answer: Any) -> list[Any]:
    """List the streams of an XREAD answer as (stream, entries); redis-py answers a list or a dict, by its version."""
    return list(answer.items()) if isinstance(answer, dict) else list(answer or [])


def forecast_stream(path: str, home: Path, durable: bool) -> None:
    """Serve the first job from a Redis stream: read samples, step the model, add each forecast; never returns.

    The model first steps through 2500 windows of history; then the key `ready` is set. Entries are added to `forecasts`
    with the fields `w` (window) and `f` (the message); about 20,000 are kept.

    Args:
        path: of the server's Unix socket.
        home: the model's file, as `add_version` writes it.
        durable: read as a member of a consumer group, and add forecast, state and acknowledgement in one transaction.

    Raises:
        OSError, ModelSetError, msgspec.DecodeError: the model cannot be read.
        TraceError, SeriesError: the shipped series of the history is gone, or the model has other steps.
        MessageError, KeyError: an entry is no sample, or lacks the field `s`.
        redis.RedisError: the server is gone, or the consumer group exists already.
    """
    import redis

    client: Any = redis.Redis(unix_socket_path=path, protocol=2)
    job, load = JOBS[0], read_rates()
    online = Online(FolderChampions(home.parent).fetch(job, home.name)[0])
    history = np.array([load[window % len(load)] for window in range(BEGIN, BEGIN + BEGUN)])
    online.admit(job, Series(BEGIN * STEP_S, STEP_S, history))
    deployment, last = Deployment(1, f"{job}-forecaster", "1", ("", "", ""), BEGIN, 0, -1, STEP_S), "0"
    small = len(online.state(job)) <= LARGE_STATE_BYTES  # a large one is kept as seldom as the fast path keeps it
    if durable:
        client.xgroup_create(METRICS, GROUP, last, mkstream=True)
    client.set("ready", 1)
    gc.collect()
    gc.freeze()
    while True:
        if durable:
            answer = client.xreadgroup(GROUP, "1", {METRICS: ">"}, block=1000)
        else:
            answer = client.xread({METRICS: last}, block=1000)
        for _, entries in list_streams(answer):
            for last, entry in entries:
                sample = read_sample(entry[b"s"], time.time())
                window = window_of(sample.time, STEP_S)
                rate = sample.arrival_rps or 0.0
                quantiles = online.step(job, rate)
                origin = ForecastContext(
                    job, window, STEP_S, sample.wall_time, sample.time_scale, 1, window - BEGIN + 1, rate
                )
                basis, levels = online.basis(job), online.forecaster.levels
                forecast_message = build_message(quantiles, basis, levels, deployment, origin)
                forecast = {"w": window, "f": encode_forecast(forecast_message)}
                if not durable:
                    client.xadd(FORECASTS, forecast, maxlen=KEPT)
                    continue
                with client.pipeline(transaction=True) as transaction:
                    transaction.xadd(FORECASTS, forecast, maxlen=KEPT)
                    if small or not window % LARGE_STATE_WINDOWS:
                        transaction.set("state", online.state(job))
                    transaction.xack(METRICS, GROUP, last)
                    transaction.execute()


if __name__ == "__main__":
    forecast_stream(sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "durable")
