"""Records of topics to try codecs on: drawn ones, as they stand on the wire, or a user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from configs.errors import CorrectableError
from models.workload.generator import WorkloadShape, draw_workload
from models.workload.keys import KeyShape
from models.workload.rates import RateShape
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.jobs.load_generator import key_name
from tidecast.messages import Forecast, MetricSample
from tidecast.wire import encode

BEGIN_S = 1_760_000_400.0
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]


class SampleError(CorrectableError):
    """A file of records that holds none."""


def draw_events(records: int, seed: int) -> Iterator[bytes]:
    """Yield so many events of skewed keys."""
    rate = RateShape(200.0, amplitude=0.5, period_s=3600.0, noise=0.2)
    shape = WorkloadShape(1.5 * records / 100, begin_ms=int(BEGIN_S * 1000), rate=rate, keys=KeyShape(50))
    drawn = draw_workload(shape, seed).records.rows()
    for seq, (key, _, t_e, _, _) in zip(range(records), drawn, strict=False):
        yield encode_event(LoadEvent(seq, t_e / 1000, key_name(key)))


def draw_metrics(records: int, seed: int) -> Iterator[bytes]:
    """Yield so many metrics of a job, an interval and a batch in turn, with every digit that an agent sends."""
    rng = np.random.default_rng(seed)
    for n in range(records):
        at, (a, b, c) = BEGIN_S + n // 2, rng.random(3).tolist()
        rows = int(rng.poisson(400))
        common: dict[str, Any] = {
            "executors": 2 + n // 400 % 3,
            "pending_executors": 0,
            "cores": 2,
            "task_ceiling": 8,
            "mode": "act",
        }
        if n % 2:
            sample = MetricSample(
                "orders", "batch", at + a / 100, at + 1 + b / 100, span_s=c, processed_rps=rows / c, batch_id=n // 2,
                batch_rows=rows, batch_s=c, stage_s=0.8 * c, latency_p50_s=c / 2, latency_p95_s=c,
                latency_max_s=1.1 * c, planning_s=a / 10, offsets_s=b / 50, log_s=a / 20, state_commit_s=b / 10,
                run_s=2 * c, gc_s=a / 100, spilled_bytes=0, watermark_lag_s=a, state_rows=50, **common,
            )  # fmt: skip
        else:
            sample = MetricSample(
                "orders", "interval", at + a / 100, at + 1 + b / 100, span_s=1 + c / 100, arrival_rps=rows + c,
                lag_records=rows // 3, **common,
            )  # fmt: skip
        yield encode(sample)


def draw_forecasts(records: int, seed: int) -> Iterator[bytes]:
    """Yield so many forecasts of a job, of twelve steps and six levels."""
    rng = np.random.default_rng(seed)
    load = 200.0
    for n in range(records):
        load *= float(np.exp(0.05 * rng.standard_normal()))
        path = load * np.exp(np.cumsum(0.05 * rng.standard_normal(12)))
        widths = np.sort(rng.normal(0, 0.2, (12, len(LEVELS))), axis=1) * np.sqrt(np.arange(1, 13))[:, None]
        quantiles = (path[:, None] * np.exp(widths)).tolist()
        at = BEGIN_S + 30.0 * n
        yield encode(
            Forecast(
                "orders", at, at + 0.1, 1.0, 30.0, LEVELS, quantiles, "orders-forecaster", "7", "champion", "blend",
                2000 + n, 1_760_000_000_000, load,
            )
        )  # fmt: skip


DRAWN: Mapping[str, Callable[[int, int], Iterator[bytes]]] = {
    "events": draw_events, "metrics": draw_metrics, "forecasts": draw_forecasts,
}  # fmt: skip


def read_lines(path: Path) -> list[bytes]:
    """Read a file of a record per line, empty lines left out.

    Raises:
        SampleError: there is none.
        OSError: it cannot be read.
    """
    lines = [line for line in path.read_bytes().splitlines() if line]
    if not lines:
        raise SampleError(f"{path} holds no record: write one per line, as they stand on the topic.")
    return lines
