"""How long the network takes: to fit, to step one series; and a peer on the same series."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from models.forecast.core.forecaster import Task, Track
from models.forecast.core.series import Floats, Series
from models.forecast.neural.training import HIDDEN, Epoch, TrainingPlan, fit_network
from pipelines.bench.forecast.evaluate import LEVELS

_PEER = Path(__file__).with_name("neuralforecast_peer.py")
_TIMED = 300  # steps of one series that are timed


class PeerError(RuntimeError):
    """The peer's interpreter could not run it; the message holds what it said."""


def measure(series: Series, horizon: int, peer: Path | None) -> dict[str, Any]:
    """Seconds on one thread; with a peer's interpreter, what it needs for the same size and number of updates."""
    import torch._dynamo  # what an optimizer of torch imports at its first step: imports are not counted

    torch.set_num_threads(1)
    older, held = series.split(len(series) // 5)
    task, plan, epochs = Task(series.step_s, horizon, LEVELS), TrainingPlan(), list[Epoch]()
    began, cpu = time.perf_counter(), time.process_time()
    network = fit_network("gru", task, older, plan, tell=epochs.append)
    fitted = time.perf_counter()
    track = network.begin(older)
    done, cpu = time.perf_counter(), time.process_time() - cpu
    made = sum(epoch.updates for epoch in epochs)
    found: dict[str, Any] = {
        "steps": len(older), "updates": made, "fit_s": fitted - began, "predict_s": done - fitted, "cpu_s": cpu,
        **_latency(track, held.values),
    }  # fmt: skip
    if peer is not None:
        found["peer"] = _peer(peer, older, horizon, made, plan)
        theirs = found["peer"]["fit_s"] + found["peer"]["predict_s"]
        found["times_faster"] = theirs / (found["fit_s"] + found["predict_s"])
        found["times_less_cpu"] = found["peer"]["cpu_s"] / cpu  # steadier where other work runs beside
    return found


def _latency(track: Track, values: Floats) -> dict[str, float]:
    walls = []
    for value in values[:_TIMED]:
        began = time.perf_counter()
        track.step(float(value))
        walls.append(time.perf_counter() - began)
    return {"step_p50_ms": 1e3 * statistics.median(walls)}


def _peer(peer: Path, older: Series, horizon: int, made: int, plan: TrainingPlan) -> dict[str, Any]:
    known = older.values[np.isfinite(older.values)]
    asked = {
        "values": known.tolist(), "horizon": horizon, "hidden": HIDDEN, "updates": max(made, 1), "context": plan.chunk,
        "levels": LEVELS,
    }  # fmt: skip
    ran = subprocess.run([peer, _PEER], input=json.dumps(asked), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise PeerError(f"{peer}: {ran.stderr.strip()[-500:]} Install neuralforecast in that environment.")
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found
