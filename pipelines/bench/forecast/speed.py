"""How long forecasters take: the network to fit and step, beside a peer; the blend to step one series or a thousand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.blend.ridge import BATCH
from models.forecast.core.forecaster import Task, Track
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.neural.training import HIDDEN, Epoch, TrainingPlan, fit_network
from pipelines.bench.forecast.evaluate import LEVELS
from pipelines.bench.peer import run_peer
from pipelines.traces.shipped import find_shipped, list_shipped

CELL, HORIZON = "taxi 5min", 12
"""The network's series, and steps ahead."""
_PEER = Path(__file__).with_name("neuralforecast_peer.py")
_TIMED = 300  # steps of one series that are timed
STEP_S = 300.0
_CUTS = 3  # moments of each shipped series that copies of it begin at
_WARM = 4  # batches before those timed


def time_network(peer: Path | None) -> dict[str, Any]:
    """Time a GRU on one thread: fitted to the older four fifths of CELL, then stepped through the next 300 steps.

    Limits torch to one thread, also afterwards.

    Args:
        peer: a Python interpreter with neuralforecast, to time a network of the same size and number of updates,
            without the missing steps of the series; or None.

    Returns:
        `steps` fitted to, `updates` (of the weights), wall seconds `fit_s` and `predict_s` (from then to the first
        forecast), `cpu_s` of both, `step_p50_ms` (a step and its forecast); with a peer `peer` (`fit_s`, `predict_s`,
        `cpu_s`, `version`), `times_faster` (its `fit_s` + `predict_s` ÷ ours) and `times_less_cpu` (its `cpu_s` ÷
        ours).

    Raises:
        TraceError: the shipped series is gone or damaged.
        PeerError: the peer's interpreter fails; OSError where it cannot be run.
        ValueError, IndexError: the last line that it prints is no JSON, or it prints nothing.
    """
    import torch

    torch.set_num_threads(1)
    series = find_shipped(CELL).series()
    older, held = series.split(len(series) // 5)
    task, plan, epochs = Task(series.step_s, HORIZON, LEVELS), TrainingPlan(), list[Epoch]()
    began, cpu = time.perf_counter(), time.process_time()
    network = fit_network("gru", task, older, plan, on_epoch=epochs.append)
    fitted = time.perf_counter()
    track = network.begin(older)
    done, cpu = time.perf_counter(), time.process_time() - cpu
    updates = sum(epoch.updates for epoch in epochs)
    figures: dict[str, Any] = {
        "steps": len(older), "updates": updates, "fit_s": fitted - began, "predict_s": done - fitted, "cpu_s": cpu,
        "step_p50_ms": 1e3 * statistics.median(_time_steps([(track, held.values[:_TIMED])])[0]),
    }  # fmt: skip
    if peer is not None:
        figures["peer"] = _time_peer(peer, older, updates, plan)
        theirs = figures["peer"]["fit_s"] + figures["peer"]["predict_s"]
        figures["times_faster"] = theirs / (figures["fit_s"] + figures["predict_s"])
        figures["times_less_cpu"] = figures["peer"]["cpu_s"] / cpu  # less disturbed by other work than wall time
    return figures


def _time_peer(peer: Path, older: Series, made: int, plan: TrainingPlan) -> dict[str, Any]:
    known = older.values[np.isfinite(older.values)]
    request = {
        "values": known.tolist(), "horizon": HORIZON, "hidden": HIDDEN, "updates": max(made, 1), "context": plan.chunk,
        "levels": LEVELS, "rows": plan.lanes,
    }  # fmt: skip
    return run_peer(peer, _PEER, request, "neuralforecast")


def time_blend(
    history: int, horizon: int = HORIZON, series_count: int = 1000, batches: int = BATCH, networked: bool = False
) -> dict[str, Any]:
    """Time a step and forecast of the blend (a mix of forecasters that learns online), on one series and on many.

    The series are copies of the shipped 5-minute ones, begun at three moments each. All have seen as many steps, so in
    a batch all refit their regressions at the same step of each cycle (of `BATCH` steps from 2048 steps of history on),
    which is the worst case. The four steps before those timed do not count.

    Args:
        history: steps that each series has seen before.
        horizon: steps ahead.
        series_count: series in a batch.
        batches: how many steps of the batch are timed, at least 1.
        networked: time a blend that carries a GRU (trained for one pass on the first of the series), which is heard.

    Returns:
        The arguments as `history`, `horizon`, `series`, `batches` and `networked`; `different` series among them;
        `step_p50_ms` of one series; of a step of the whole batch, in seconds, `batch_p50_s` and `batch_worst_s` on the
        wall, `batch_cpu_p50_s` and `batch_cpu_worst_s` of the processor.

    Raises:
        SeriesError: no shipped series is long enough.
    """
    task = Task(STEP_S, horizon, LEVELS)
    places = [place for place in list_shipped() if place.step_s == STEP_S]
    blend = _carrying(task, places[0].series()) if networked else Blend(task)
    every = (one for place in places for one in _begin_tracks(blend, place.series(), history, _WARM + batches))
    begun = list(islice(every, series_count))
    if not begun:
        raise SeriesError(f"history={history}: no shipped series has so many steps and {_WARM + batches} more")
    copies = [(blend.resume(track.state())[0], held) for track, held in islice(cycle(begun), series_count)]
    single = _time_steps(begun[:1])[0]
    wall, processor = _time_steps(copies)
    return {
        "history": history, "horizon": horizon, "step_p50_ms": 1e3 * statistics.median(single),
        "networked": networked, "series": series_count, "different": min(len(begun), series_count), "batches": batches,
        "batch_p50_s": statistics.median(wall), "batch_worst_s": max(wall),
        "batch_cpu_p50_s": statistics.median(processor), "batch_cpu_worst_s": max(processor),
    }  # fmt: skip


def _carrying(task: Task, series: Series) -> NetworkedBlend:
    """A blend with a network that speaks at once: how long it takes does not hang on how well it was trained."""
    network = fit_network("gru", task, series, TrainingPlan(epochs=1))
    return NetworkedBlend(task, replace(network.frozen, until=0.0))


def _begin_tracks(
    blend: Blend | NetworkedBlend, series: Series, history: int, after: int
) -> list[tuple[Track, Floats]]:
    """Tracks after so many steps, before some moments of a series, and the values that come."""
    spare = len(series) - history - after
    cuts = sorted({spare * i // (_CUTS - 1) for i in range(_CUTS)}) if spare >= 0 else []
    found: list[tuple[Track, Floats]] = []
    for cut in cuts:
        older, held = series.split(cut + after)
        found.append((blend.begin(older.split(history)[1]), held.values[:after]))
    return found


def _time_steps(begun: Sequence[tuple[Track, Floats]]) -> tuple[list[float], list[float]]:
    """Wall and processor seconds of each batch but the first few."""
    wall: list[float] = []
    processor: list[float] = []
    for i in range(len(begun[0][1])):
        began, cpu = time.perf_counter(), time.process_time()
        for track, held in begun:
            track.step(float(held[i]))
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - cpu)
    return wall[_WARM:], processor[_WARM:]
